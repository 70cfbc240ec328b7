begin;

/*
POST /api/orders

{"email": "ana@example.com", "lines": [{"productId": 1, "quantity": 2}, {"productId": 2, "quantity": 1}]}

HTTP/1.1 200

{"orderId": "{{integer}}", "total": 68.80}
*/
select stock = 10, 'the stock is reserved' from product where id = 1;

/*
POST /api/orders

{"email": "ana@example.com", "lines": [{"productId": 1, "quantity": 1}, {"productId": 2, "quantity": 9}]}

HTTP/1.1 400
*/
select stock = 10, 'nothing is reserved' from product where id = 1;
select count(*) = 1, 'nothing is stored' from customer_order;

/*
GET /api/products?price=lt.20&order=price.desc

HTTP/1.1 200

[{"id": 3, "name": "Chain", "price": 15.50, "available": false}, {"id": 1, "name": "Basket", "price": 9.90, "available": true}]
*/

/*
GET /api/orders

HTTP/1.1 401
*/

/*
GET /api/orders
# @claim user_roles=clerk

HTTP/1.1 200

[{"id": "{{integer}}", "email": "ana@example.com", "createdAt": "{{timestamp}}", "total": 68.80}]
*/
