-- Sign-up, verification of the address, sign-in by password or link, and reset of the password.

-- What a login returns: the claims of the session. Every login ends here.
create function session_of(_account account)
returns table (user_id bigint, user_name text, user_roles text[], database_role text, session_id uuid,
               second_factor text)
language sql as $$
    with issued as (insert into session (account_id) values (_account.id) returning id)
    select _account.id, _account.name, _account.roles, 'accounts_user', issued.id,
           -- For users with an authenticator app, a passkey is another second factor.
           case when factor.confirmed and exists (select from passkey where account_id = _account.id) then 'passkey' end
    from issued, rowcall.second_factor_of(_account.id::text) factor
$$;

create function session_is_valid(_id text, _user_id text) returns boolean language sql as $$
    update session set seen_at = now()
    where id = _id::uuid and account_id = _user_id::bigint and ended_at is null and issued_at > now() - interval '30 days'
    returning true
$$;

-- The password is set with the link of the mail. If it were part of the sign-up, an attacker could sign up with the
-- address of another person, who would confirm an account with a password that the attacker knows.
create function sign_up(_email text, _name text)
returns table (user_id bigint, "to" text, name text, subject text, text text) language plpgsql as $$
begin
    insert into account (email, name) values (_email, _name) on conflict (lower(email)) do nothing;
    return query
        select a.id, a.email, a.name, case when verified_at is not null then 'Your account' end,
               case when verified_at is not null then 'You have an account already. Sign in: http://localhost:8080/' end
        from account a where lower(a.email) = lower(_email);
end $$;
comment on function sign_up(text, text) is 'HTTP POST /api/sign-up
The response is the same whether the address has an account or not: its owner gets a mail.
allow_anonymous
rate_limiter by_address
validate _email using email
validate _name using required
issue_token account for 1 day at most 5
send_mail template account';

create function confirm_account(_token text, _password text) returns void language sql as $$
    update account set verified_at = coalesce(verified_at, now()), password_hash = _password
    where id = current_setting('request.token_subject')::bigint
$$;
comment on function confirm_account(text, text) is 'HTTP POST /api/sign-up/confirm
allow_anonymous
rate_limiter by_address
parameter_hash _password
consume_token account';

create function sign_in(_email text, _password text)
returns table (user_id bigint, user_name text, user_roles text[], database_role text, session_id uuid,
               second_factor text, hash text)
language sql as $$
    select s.*, a.password_hash from account a, session_of(a) s
    where lower(a.email) = lower(_email) and a.verified_at is not null
$$;
comment on function sign_in(text, text) is 'HTTP POST /api/sign-in
login';

create function send_link(_email text) returns table (user_id bigint, "to" text, name text) language sql as $$
    select id, email, name from account where lower(email) = lower(_email) and verified_at is not null
$$;
comment on function send_link(text) is 'HTTP POST /api/link
allow_anonymous
rate_limiter by_address
issue_token link for 10 minutes at most 5
send_mail template link';

create function enter(_token text)
returns table (user_id bigint, user_name text, user_roles text[], database_role text, session_id uuid,
               second_factor text)
language sql as $$
    select s.* from account a, session_of(a) s where a.id = current_setting('request.token_subject')::bigint
$$;
comment on function enter(text) is 'HTTP POST /api/enter
login
rate_limiter by_address
consume_token link';

create function forgot_password(_email text) returns table (user_id bigint, "to" text, name text) language sql as $$
    select id, email, name from account where lower(email) = lower(_email)
$$;
comment on function forgot_password(text) is 'HTTP POST /api/password/forgotten
allow_anonymous
rate_limiter by_address
issue_token password_reset for 1 hour at most 5
send_mail template reset';

-- All sessions end, and no device is remembered any more: the former password may have been stolen.
create function reset_password(_token text, _password text) returns void language plpgsql as $$
declare
    _id bigint := current_setting('request.token_subject')::bigint;
begin
    update account set password_hash = _password, verified_at = coalesce(verified_at, now()) where id = _id;
    update session set ended_at = now() where account_id = _id and ended_at is null;
    perform rowcall.revoke_devices(_id::text);
end $$;
comment on function reset_password(text, text) is 'HTTP POST /api/password/reset
allow_anonymous
rate_limiter by_address
parameter_hash _password
consume_token password_reset';

create function sign_out(_session_id text default null) returns void language sql as $$
    update session set ended_at = now() where id = _session_id::uuid
$$;
comment on function sign_out(text) is 'HTTP POST /api/sign-out
authorize
user_parameters
logout';
