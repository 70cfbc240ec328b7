begin;
delete from shop.sale;
insert into shop.sale (customer_id, album_id, quantity, price) values (1, 20, 3, 16.00), (2, 10, 1, 18.50);

/*
GET /reports/best-sellers

HTTP/1.1 200

[{"title": "Azulejo", "sold": 3, "revenue": 48.00}, {"title": "Harbour Lights", "sold": 1, "revenue": 18.50}]
*/

/*
GET /reports/prices.csv

HTTP/1.1 200
Content-Type: text/csv

"title","price"
"Azulejo",16.00
{{any}}
*/
