-- The price list as a text file.
-- HTTP GET /reports/prices.csv
-- raw
-- separator ,
-- new_line \n
-- columns
-- Content-Type: text/csv
-- Content-Disposition: attachment; filename="prices.csv"
select title, price from shop.album order by title;
