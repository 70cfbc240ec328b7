-- A first table and a first endpoint. Change this file before it has run on any other machine.

create table greeting (id int generated always as identity primary key, text text not null);
insert into greeting (text) values ('Hello');

create function greetings() returns setof greeting language sql stable as 'select * from greeting order by id';
comment on function greetings() is 'HTTP GET /api/greetings
allow_anonymous';
