begin;
insert into greeting (text) values ('Hi');

/*
GET /api/greetings

HTTP/1.1 200

[{"id": 1, "text": "Hello"}, {"id": "{{integer}}", "text": "Hi"}]
*/
