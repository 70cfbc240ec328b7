-- Customers come, are renamed, and may only go when they have never bought anything.
begin;

/*
PUT /customers

{"name": "Ada", "email": "ada@example.org"}

HTTP/1.1 200

{"customerId": "{{integer}}", "name": "Ada", "email": "ada@example.org"}
*/

/*
PUT /customers

{"name": "Ada L.", "email": "ada@example.org"}

HTTP/1.1 200

{"customerId": "{{integer}}", "name": "Ada L.", "email": "ada@example.org"}
*/

select count(*) = 1, 'the address distinguishes customers' from shop.customer where email = 'ada@example.org';

/*
DELETE /customers?customerId=1

HTTP/1.1 200

[]
*/

select count(*) = 1, 'who has bought something stays' from shop.customer where customer_id = 1;
