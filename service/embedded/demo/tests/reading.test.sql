-- Shapes of answers.

/*
GET /couriers/3

HTTP/1.1 200

{"name": "{{string}}", "bicycle": "{{string}}", "delivered": "{{integer}}", "heaviest": "{{number}}",
 "lastDelivery": "{{timestamp}}"}
*/

/*
GET /busiest?day=2026-01-09&top=2

HTTP/1.1 200

[{"courier": "{{string}}", "parcels": "{{integer}}"}, {"courier": "{{string}}", "parcels": "{{integer}}"}]
*/

/*
GET /couriers/3/overview

HTTP/1.1 200

{"courier": {"id": 3, "{{more}}": ""}, "waiting": ["{{more}}"], "delivered": {"parcels": "{{integer}}", "weight": "{{number}}"}}
*/

/*
GET /hello?name=you

HTTP/1.1 200
Content-Type: text/plain{{any}}
*/

select body like '%you%', 'it greets the name of the request' from _response_4;
