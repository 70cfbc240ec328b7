-- HTTP POST /sign-out
-- logout
select 'Cookies';
