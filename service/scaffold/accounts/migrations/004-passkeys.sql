-- The commands of passkeys (docs/passkeys.md of rowcall). Only signed-in users add passkeys, so a lost one is no lost account.

create function base64url(bytea) returns text language sql immutable
return translate(rtrim(encode($1, 'base64'), '='), E'+/\n', '-_');

create function keys_of(_account_id bigint) returns json language sql stable as $$
    select json_agg(json_build_object('type', 'public-key', 'id', base64url(credential_id), 'transports', transports)
                    order by created_at, credential_id)
    from passkey where account_id = _account_id
$$;

create function passkey_challenge_add_existing(_claims json, _body json)
returns table (status int, message text, challenge text, challenge_id uuid, user_handle text, user_name text,
               user_display_name text, exclude_credentials json, user_context json) language sql as $$
    with made as (insert into passkey_challenge (operation) values ('registration') returning id, challenge)
    select 200, null::text, base64url(made.challenge), made.id, base64url(a.passkey_handle), a.email, a.name,
           keys_of(a.id), json_build_object('user_id', a.id)
    from made, account a where a.id = (_claims->>'user_id')::bigint
$$;

-- Browsers offer the keys that they have for this site. The ids of an account's keys would reveal who has an account.
create function passkey_challenge_authentication(_email text, _body json)
returns table (status int, challenge text, challenge_id uuid, allow_credentials json) language sql as $$
    with made as (insert into passkey_challenge (operation) values ('authentication') returning id, challenge)
    select 200, base64url(made.challenge), made.id, null::json from made
$$;

create function passkey_verify_challenge(_id uuid, _operation text) returns bytea language sql as $$
    delete from passkey_challenge where id = _id and operation = _operation and expires_at > now() returning challenge
$$;

create function passkey_complete_add_existing(_credential_id bytea, _handle bytea, _public_key bytea, _algorithm int,
    _transports text[], _backup_eligible boolean, _context json, _analytics json)
returns table (status int, message text) language sql as $$
    insert into passkey (credential_id, account_id, public_key, algorithm, transports)
    values (_credential_id, (_context->>'user_id')::bigint, _public_key, _algorithm, _transports)
    returning 200, null::text
$$;

create function passkey_authenticate_data(_credential_id bytea)
returns table (status int, public_key bytea, public_key_algorithm int, sign_count bigint, user_handle text,
               user_context json) language sql stable as $$
    select 200, p.public_key, p.algorithm, p.sign_count, base64url(a.passkey_handle), json_build_object('user_id', a.id)
    from passkey p join account a on a.id = p.account_id where p.credential_id = _credential_id
$$;

create function passkey_complete_authenticate(_credential_id bytea, _sign_count bigint, _context json, _analytics json)
returns table (user_id bigint, user_name text, user_roles text[], database_role text, session_id uuid) language sql as $$
    with used as (
        update passkey set sign_count = _sign_count, used_at = now()
        where credential_id = _credential_id and (_sign_count = 0 or sign_count < _sign_count)
        returning account_id
    )
    select s.user_id, s.user_name, s.user_roles, s.database_role, s.session_id
    from used, account a, session_of(a) s where a.id = used.account_id
$$;
