-- HTTP POST
-- login
-- allow_anonymous
select 'Cookies' as scheme, 'u1' as name_identifier, 'bob' as name where :name = 'bob';
insert into t2(v) values ('login-second');