-- What sells, as JSON, as a page or as a spreadsheet: ?format=html, ?format=excel.
-- HTTP GET /reports/best-sellers
-- @define_param format
-- table_format = {format}
-- excel_file_name = best-sellers
select a.title, sum(s.quantity) as sold, sum(s.quantity * s.price) as revenue
from shop.sale s join shop.album a using (album_id)
group by a.title
order by revenue desc, a.title;
