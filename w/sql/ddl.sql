-- HTTP POST
create table if not exists made(a int); drop table if exists made