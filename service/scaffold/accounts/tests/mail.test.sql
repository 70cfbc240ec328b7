-- Responses do not say whether an address has an account; mail goes to its owner only, and not without end.
begin;
insert into account (email, name, verified_at) values ('ana@example.com', 'Ana', now());

/*
POST /api/password/forgotten

{"email": "unknown@example.com"}

HTTP/1.1 202
*/
select count(*) = 0, 'no mail' from rowcall.mail;

/*
POST /api/password/forgotten

{"email": "ANA@example.com"}

HTTP/1.1 202
*/
select message ->> 'subject' = 'Your password' and message ->> 'text' ~ '#reset=[0-9a-f]{64}', 'a mail with a token'
from rowcall.mail;

/*
POST /api/sign-up

{"email": "ana@example.com", "name": "Attacker"}

HTTP/1.1 202
*/
select count(*) = 1, 'the owner learns of it' from rowcall.mail where message ->> 'text' like 'You have an account already%';
select name = 'Ana', 'the account is as it was' from account where email = 'ana@example.com';

/*
POST /api/sign-up

{"email": "no address", "name": "Ana"}

HTTP/1.1 400
*/

/*
POST /api/password/reset

{"token": "0000", "password": "a password of an attacker"}

HTTP/1.1 400
*/
