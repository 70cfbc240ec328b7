-- Notes are those of their owners, and administration needs a role and a second factor.
begin;
insert into account (id, email, name, verified_at) overriding system value values
    (-1, 'ana@example.com', 'Ana', now()), (-2, 'ben@example.com', 'Ben', now());

/*
POST /api/notes
# @claim user_id=-1
# @claim database_role=accounts_user

{"text": "secret of Ana"}

HTTP/1.1 200
*/

/*
GET /api/notes
# @claim user_id=-1
# @claim database_role=accounts_user

HTTP/1.1 200

[{"id": "{{integer}}", "text": "secret of Ana", "createdAt": "{{timestamp}}"}]
*/

/*
GET /api/notes
# @claim user_id=-2
# @claim database_role=accounts_user

HTTP/1.1 200

[]
*/

/*
GET /api/notes

HTTP/1.1 401
*/

/*
GET /api/accounts
# @claim user_id=-2
# @claim amr=mfa

HTTP/1.1 403
*/

/*
GET /api/accounts
# @claim user_id=-1
# @claim user_roles=admin

HTTP/1.1 401
*/

/*
GET /api/accounts
# @claim user_id=-1
# @claim user_roles=admin
# @claim amr=mfa

HTTP/1.1 200
*/

/*
GET /api/account/export
# @claim user_id=-1

HTTP/1.1 200
*/
select body::json #>> '{account,email}' = 'ana@example.com', 'the export has the account' from _response_8;
select body::json #>> '{notes,0,text}' = 'secret of Ana', 'the export has the notes' from _response_8;

/*
POST /api/account/delete
# @claim user_id=-1

HTTP/1.1 401
*/

-- The ids of an account's passkeys would reveal who has an account.
insert into passkey (credential_id, account_id, public_key, algorithm) values ('\x01', -1, '\x02', -7);
select allow_credentials is null, 'no passkeys of an address'
from passkey_challenge_authentication('ana@example.com', null);
