-- A parcel is ordered, rides and arrives; nothing of it stays in the demo.
begin;

/*
POST /parcels

{"size": "box", "weight": 2, "street": "Quay", "number": 5, "district": "uni"}

HTTP/1.1 200

{"id": "{{integer}}", "courier": "{{string}}", "price": 5.60}
*/

select status from demo.parcel, _response_1 where id = (body::jsonb ->> 'id')::int;
/* EXPECT ROWS
200
*/

/*
GET /quote?size=box&weight=40&district=har

HTTP/1.1 400
*/

/*
POST /parcels/17/deliver

HTTP/1.1 204
*/

/*
POST /parcels/17/deliver

HTTP/1.1 400
*/

select delivered = now(), 'it has arrived once' from demo.parcel where id = 17;
