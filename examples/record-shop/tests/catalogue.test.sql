-- What can be looked at. Rates come from another service, which a stub stands for.
begin;
insert into shop.artist values (4, 'Nightjars', 'FI');
insert into shop.album values (40, 4, 'Owl Hours', '2026-01-09', 20.00, 3);

/*
GET /albums?artist=night&inStock=true

HTTP/1.1 200

[{"albumId": 40, "title": "Owl Hours", "artist": "Nightjars", "released": "2026-01-09", "price": 20.00}]
*/

/*
GET /albums/40

HTTP/1.1 200

{"album": {"albumId": 40, "stock": 3, "{{more}}": ""}, "tracks": []}
*/

/*
GET /artists/names

HTTP/1.1 200

["Ferrous", "Marisol Quartet", "Nightjars", "The Lanterns"]
*/

/*
STUB GET {{any}}/rates/eur
HTTP/1.1 200

{"rate": 0.5}
*/

/*
GET /albums/40/price-in/eur

HTTP/1.1 200

{"title": "Owl Hours", "currency": "EUR", "price": 10.00, "problem": null}
*/
