-- The example of the demo, a small town's bicycle couriers: districts, couriers, parcels and what happened to them.
-- The rows are generated without randomness, so that every demo shows the same ones.

drop schema if exists demo cascade;
create schema demo;
set local search_path = demo;

create type size as enum ('letter', 'box', 'crate');
create type spot as (street text, number int);
create type leg as (from_spot spot, to_spot spot, kilometres numeric(5, 1));

create table district (
    code text primary key,
    name text not null,
    hilly boolean not null,
    surcharge numeric(4, 2) not null
);

create table courier (
    id int primary key generated always as identity,
    name text not null,
    bicycle text not null,
    districts text[] not null,
    since date not null,
    skills jsonb not null
);

create table parcel (
    id int primary key generated always as identity,
    size size not null,
    weight real not null,
    origin spot not null,
    destination spot not null,
    district text not null references district,
    courier int references courier,
    ordered timestamptz not null,
    delivered timestamptz,
    note text
);
create index on parcel (courier);
create index on parcel (district, ordered);

create table scan (
    parcel int not null references parcel on delete cascade,
    at timestamptz not null,
    place text not null,
    primary key (parcel, at)
);

insert into district values
    ('OLD', 'Old Town', false, 0.00), ('HAR', 'Harbour', false, 0.50), ('MIL', 'Mill Hill', true, 1.80),
    ('UNI', 'University', false, 0.30), ('ORC', 'Orchards', true, 1.20), ('STA', 'Station Quarter', false, 0.00);

insert into courier (name, bicycle, districts, since, skills)
select
    (array['Alma', 'Bruno', 'Chidi', 'Dagny', 'Emre', 'Faye', 'Goran', 'Hana', 'Ines', 'Jorik', 'Kaja', 'Lev'])[n],
    (array['cargo', 'road', 'fixed', 'electric'])[1 + n % 4],
    array(select code from district order by code offset n % 4 limit 2 + n % 2),
    date '2019-03-01' + n * 97,
    jsonb_build_object('languages', jsonb_build_array('en', (array['de', 'fr', 'tr', 'pl'])[1 + n % 4]), 'fragile', n % 3 = 0)
from generate_series(1, 12) as n;

insert into parcel (size, weight, origin, destination, district, courier, ordered, delivered, note)
select
    (array['letter', 'letter', 'box', 'box', 'crate'])[1 + n % 5]::size,
    ((n * 37) % 400)::real / 20 + 0.05,
    row((array['Canal Street', 'Poplar Road', 'Brook Yard'])[1 + n % 3], 1 + n % 60)::spot,
    row((array['Tower Road', 'Cherry Row', 'Quay', 'College Walk'])[1 + n % 4], 1 + n * 7 % 90)::spot,
    (array['OLD', 'HAR', 'MIL', 'UNI', 'ORC', 'STA'])[1 + n * 5 % 6],
    1 + n * 11 % 12,
    timestamptz '2026-01-05 07:30+00' + n * interval '9 minutes',
    case when n % 17 <> 0 then timestamptz '2026-01-05 07:30+00' + n * interval '9 minutes' + (20 + n % 50) * interval '1 minute' end,
    case when n % 10 = 0 then 'Ring twice — the dog is “shy” ' || n end
from generate_series(1, 4000) as n;

insert into scan
select id, ordered + step * interval '12 minutes', (array['picked up', 'hub', 'on the road', 'at the door'])[step]
from parcel, generate_series(1, 2 + id % 3) as step;

analyze;

-- A scalar. STABLE makes it GET; the path comes from the names: /api/demo/parcel-count
create function parcel_count() returns bigint language sql stable
begin atomic
    select count(*) from demo.parcel;
end;
comment on function parcel_count() is 'How many parcels there are.
HTTP
allow_anonymous';

-- Plain text.
create function greeting(name text default 'guest') returns text language sql immutable
return format('Hello, %s!', name);
comment on function greeting(text) is 'HTTP GET /hello
allow_anonymous';

-- A set of a table type.
create function districts() returns setof district language sql stable
begin atomic
    select * from demo.district order by code;
end;
comment on function districts() is 'HTTP GET /districts
allow_anonymous';

-- RETURNS TABLE with arrays, dates and json.
create function couriers()
returns table (id int, name text, bicycle text, districts text[], since date, skills jsonb) language sql stable
begin atomic
    select c.id, c.name, c.bicycle, c.districts, c.since, c.skills from demo.courier c order by c.id;
end;
comment on function couriers() is 'HTTP GET /couriers
allow_anonymous';

-- One row chosen by the path; a single record instead of a list.
create function courier_by_id(id int)
returns table (name text, bicycle text, delivered bigint, heaviest real, last_delivery timestamptz) language sql stable
begin atomic
    select c.name, c.bicycle, count(p.delivered), max(p.weight), max(p.delivered)
    from demo.courier c left join demo.parcel p on p.courier = c.id
    where c.id = courier_by_id.id
    group by c.id;
end;
comment on function courier_by_id(int) is 'HTTP GET /couriers/{id}
single
response_null_handling not_found
allow_anonymous';

-- Optional parameters: leave out what you do not care about.
create function search_parcels(
    _district text default null, _size text default null, _min_weight real default 0,
    _open boolean default null, _limit int default 20
)
returns table (id int, size size, weight real, district text, courier text, ordered timestamptz, delivered timestamptz, note text)
language sql stable
begin atomic
    select p.id, p.size, p.weight, p.district, c.name, p.ordered, p.delivered, p.note
    from demo.parcel p left join demo.courier c on c.id = p.courier
    where (_district is null or p.district = upper(_district))
      and (_size is null or p.size::text = _size)
      and p.weight >= _min_weight
      and (_open is null or (p.delivered is null) = _open)
    order by p.id
    limit least(greatest(_limit, 0), 4000);
end;
comment on function search_parcels(text, text, real, boolean, int) is 'HTTP GET /parcels
allow_anonymous';

-- Composite values: a journey from spot to spot.
create function journey(parcel_id int) returns table (parcel int, leg leg, scans timestamptz[]) language sql stable
begin atomic
    select p.id, row(p.origin, p.destination, 1 + p.id % 70 / 10.0)::demo.leg,
           array(select s.at from demo.scan s where s.parcel = p.id order by s.at)
    from demo.parcel p where p.id = journey.parcel_id;
end;
comment on function journey(int) is 'HTTP GET /parcels/{parcel_id}/journey
single
response_null_handling not_found
allow_anonymous';

-- JSON that the database creates is sent unchanged.
create function dashboard() returns json language sql stable
begin atomic
    select json_object_agg(d.name, json_build_object('open', o.open, 'delivered', o.delivered, 'average_weight', o.weight))
    from demo.district d
    join lateral (
        select count(*) filter (where delivered is null) as open, count(delivered) as delivered,
               round(avg(weight)::numeric, 2) as weight
        from demo.parcel where district = d.code
    ) o on true;
end;
comment on function dashboard() is 'HTTP GET /dashboard
allow_anonymous';

-- An overload: with a day, or for all days.
create function busiest(top int default 3) returns table (courier text, parcels bigint) language sql stable
begin atomic
    select c.name, count(*) from demo.parcel p join demo.courier c on c.id = p.courier
    group by c.name order by 2 desc, 1 limit greatest(top, 0);
end;
create function busiest(day date, top int) returns table (courier text, parcels bigint) language sql stable
begin atomic
    select c.name, count(*) from demo.parcel p join demo.courier c on c.id = p.courier
    where p.ordered >= day and p.ordered < day + 1
    group by c.name order by 2 desc, 1 limit greatest(top, 0);
end;
comment on function busiest(int) is 'HTTP GET /busiest
allow_anonymous';
comment on function busiest(date, int) is 'HTTP GET /busiest
allow_anonymous';

-- Bare values of a set.
create function streets() returns setof text language sql stable
begin atomic
    select distinct (origin).street from demo.parcel
    union select distinct (destination).street from demo.parcel
    order by 1;
end;
comment on function streets() is 'HTTP GET /streets
allow_anonymous';

-- A slow routine with a cached response: the second request is answered at once, in any worker.
create function forecast(district text default 'all') returns table (district text, rain_in text, asked_at time(0))
language sql as $$
    select forecast.district, '3 hours', clock_timestamp()::time(0) from pg_sleep(1);
$$;
comment on function forecast(text) is 'HTTP GET /forecast
allow_anonymous
single
cached
cache_expires 1 minute';

-- Arithmetic with exact numbers, and an error that the routine raises.
create function quote(size size, weight numeric, district text) returns numeric language plpgsql stable as $$
declare
    surcharge numeric;
begin
    select d.surcharge into surcharge from demo.district d where d.code = upper(quote.district);
    if not found then
        raise exception 'We do not ride to %', district using hint = 'GET /districts lists where we do.';
    end if;
    if weight > 25 then
        raise exception '% kg is too heavy for a bicycle', weight;
    end if;
    return round(case size when 'letter' then 2.5 when 'box' then 4.9 else 9.9 end + weight * 0.2 + surcharge, 2);
end
$$;
comment on function quote(size, numeric, text) is 'HTTP GET /quote
allow_anonymous';

-- A POST that writes a row and returns it.
create function order_parcel(
    size size, weight real, street text, number int, district text, note text default null
) returns table (id int, courier text, price numeric) language plpgsql as $$
declare
    price numeric := demo.quote(order_parcel.size, order_parcel.weight::numeric, order_parcel.district);
    rider demo.courier;
begin
    select c.* into rider from demo.courier c
    where upper(order_parcel.district) = any (c.districts)
    order by (select count(*) from demo.parcel p where p.courier = c.id and p.delivered is null), c.id limit 1;
    return query
        with added as (
            insert into demo.parcel (size, weight, origin, destination, district, courier, ordered, note)
            values (order_parcel.size, order_parcel.weight, row('Brook Yard', 1)::demo.spot,
                    row(street, number)::demo.spot, upper(order_parcel.district), rider.id, now(), order_parcel.note)
            returning parcel.id
        )
        select added.id, rider.name, price from added;
end
$$;
comment on function order_parcel(size, real, text, int, text, text) is 'HTTP POST /parcels
single
allow_anonymous';

-- A void function: 204 and nothing else.
create function deliver(parcel_id int) returns void language plpgsql as $$
begin
    update demo.parcel set delivered = now() where id = parcel_id and delivered is null;
    if not found then
        raise exception 'Parcel % is not on its way', parcel_id;
    end if;
end
$$;
comment on function deliver(int) is 'HTTP POST /parcels/{parcel_id}/deliver
allow_anonymous';

-- A procedure with an INOUT parameter.
create procedure sweep_old_scans(inout keep_days int default 3650, inout removed bigint default 0) language plpgsql as $$
begin
    delete from demo.scan where at < now() - make_interval(days => keep_days);
    get diagnostics removed = row_count;
end
$$;
comment on procedure sweep_old_scans(int, bigint) is 'HTTP POST /maintenance/sweep
allow_anonymous';

-- No annotation admits anonymous callers: the response is 401 and says how to open the endpoint.
create function payroll() returns table (courier text, parcels bigint, pay numeric) language sql stable
begin atomic
    select c.name, count(p.delivered), round(count(p.delivered) * 3.2, 2)
    from demo.courier c left join demo.parcel p on p.courier = c.id group by c.name order by 1;
end;
comment on function payroll() is 'HTTP GET /payroll
authorize dispatcher';

-- Users who may sign in. The hashes are those of the passwords `pedals` and `bells`; `rowcall --hash` prints hashes.
create table account (
    name text primary key,
    password_hash text not null,
    courier int references courier,
    roles text[] not null
);
insert into account values
    ('alma', 'ZYTPyieNQ9YAHw8p6Q4dfNra4o0hfvF6Z48HFC1SJ6uEUQ/nUEGdM2VOP/tyPVYE', 1, '{courier}'),
    ('dagny', 'eqTO8wQXGtCfp+9IRBjkG/Lo9xgpQq8ZCYD/6JRvQin/Ey9YYzvRiTenxGjg33h0', 4, '{courier, dispatcher}');

-- One row signs its caller in: `hash` is checked against the password, the other columns become claims.
create function sign_in(name text, password text) returns table (hash text, user_id int, user_name text, user_roles text[])
language sql stable
begin atomic
    select a.password_hash, a.courier, a.name, a.roles from demo.account a where a.name = sign_in.name;
end;
comment on function sign_in(text, text) is 'HTTP POST /sign-in
login';

create procedure sign_out() language sql begin atomic end;
comment on procedure sign_out() is 'HTTP POST /sign-out
logout';

-- The same for users of an external provider, if Auth:External has one: the provider has identified the user.
create function external_login(provider text, email text) returns table (user_id int, user_name text, user_roles text[])
language sql stable
begin atomic
    select a.courier, a.name, a.roles from demo.account a where a.name || '@couriers.example' = external_login.email;
end;

-- Passkeys: rowcall verifies what a browser sends; these functions store challenges and keys.
create table passkey (
    credential_id bytea primary key,
    account text not null references account,
    public_key bytea not null,
    algorithm int not null,
    sign_count bigint not null default 0
);
create table passkey_challenge (
    id uuid primary key default gen_random_uuid(),
    challenge bytea not null default uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
    expires timestamptz not null default now() + interval '5 minutes'
);
create function base64url(bytes bytea) returns text language sql immutable
return translate(rtrim(encode(bytes, 'base64'), '='), E'+/\n', '-_');

create function passkey_add_options(claims json, body json)
returns table (challenge text, challenge_id uuid, user_handle text, user_name text, user_display_name text,
               exclude_credentials json, user_context json) language sql
begin atomic
    with made as (insert into demo.passkey_challenge default values returning id, challenge)
    select demo.base64url(made.challenge), made.id, demo.base64url(convert_to(a.name, 'UTF8')), a.name, a.name,
        (select json_agg(json_build_object('type', 'public-key', 'id', demo.base64url(p.credential_id)))
         from demo.passkey p where p.account = a.name),
        json_build_object('account', a.name)
    from made, demo.account a where a.name = claims ->> 'user_name';
end;
create function passkey_login_options() returns table (challenge text, challenge_id uuid) language sql
begin atomic
    with made as (insert into demo.passkey_challenge default values returning id, challenge)
    select demo.base64url(made.challenge), made.id from made;
end;
create function passkey_take_challenge(id uuid) returns bytea language sql
begin atomic
    delete from demo.passkey_challenge c where c.id = passkey_take_challenge.id and c.expires > now() returning c.challenge;
end;
create function passkey_keep(credential_id bytea, public_key bytea, algorithm int, context json) returns void language sql
begin atomic
    insert into demo.passkey (credential_id, account, public_key, algorithm)
    values (passkey_keep.credential_id, context ->> 'account', passkey_keep.public_key, passkey_keep.algorithm);
end;
create function passkey_of(credential_id bytea)
returns table (public_key bytea, public_key_algorithm int, sign_count bigint) language sql stable
begin atomic
    select p.public_key, p.algorithm, p.sign_count from demo.passkey p where p.credential_id = passkey_of.credential_id;
end;
create function passkey_sign_in(credential_id bytea, new_count bigint)
returns table (user_id int, user_name text, user_roles text[]) language sql
begin atomic
    with used as (
        update demo.passkey p set sign_count = new_count
        where p.credential_id = passkey_sign_in.credential_id and (new_count = 0 or p.sign_count < new_count)
        returning p.account
    )
    select a.courier, a.name, a.roles from used join demo.account a on a.name = used.account;
end;

-- The id comes from the session and not from the request: each user sees their own parcels.
create function my_parcels(_user_id text default null) returns table (parcel int, ordered timestamptz, note text)
language sql stable
begin atomic
    select p.id, p.ordered, p.note from demo.parcel p where p.courier = my_parcels._user_id::int order by p.ordered;
end;
comment on function my_parcels(text) is 'HTTP GET /my/parcels
authorize courier
user_parameters';

-- A page: a function that returns text, with the content type of HTML.
create function login_page() returns text language sql immutable return $$<!doctype html>
<meta charset="utf-8"><title>Bicycle couriers</title>
<form id="in"><input name="name" placeholder="alma or dagny"> <input name="password" type="password"
 placeholder="pedals or bells"> <button>Sign in</button></form>
<button id="out">Sign out</button> <button id="pay">Payroll</button>
<button id="key">Add a passkey</button> <button id="use">Sign in with a passkey</button>
<p id="message">You are not signed in.</p>
<script>
const say = text => { document.getElementById("message").textContent = text };
const json = { "Content-Type": "application/json" };
const post = (path, body) => fetch(path, { method: "POST", headers: json, body: JSON.stringify(body) });
const mine = async () => {
  const answer = await fetch("my/parcels");
  say(answer.ok ? `You carry ${(await answer.json()).length} parcels.` : (await answer.json()).title);
};
document.getElementById("in").onsubmit = async event => {
  event.preventDefault();
  const answer = await post("sign-in", Object.fromEntries(new FormData(event.target)));
  answer.ok ? mine() : say("That is not right.");
};
document.getElementById("out").onclick = async () => { await post("sign-out", {}); mine() };
const passkey = async (path, create) => {
  try {
    const options = await (await post(`api/passkey/${path}/options`, {})).json();
    if (!options.challenge) return say(options.title);
    const credential = (await create(options)).toJSON();
    const answer = await post(`api/passkey/${path}`,
      { ...credential.response, credentialId: credential.id, challengeId: options.challengeId,
        userContext: options.userContext });
    if (!answer.ok) return say((await answer.json()).title);
    path == "add" ? say("Your passkey is stored.") : mine();
  } catch (error) { say(`${error.message} (Passkeys need https, or localhost in the address.)`) }
};
document.getElementById("key").onclick = () => passkey("add", options => navigator.credentials.create(
  { publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) }));
document.getElementById("use").onclick = () => passkey("login", options => navigator.credentials.get(
  { publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) }));
document.getElementById("pay").onclick = async () => {
  const answer = await fetch("payroll");
  say(answer.ok ? `${(await answer.json()).length} couriers are paid.` : (await answer.json()).title);
};
</script>
$$;
comment on function login_page() is 'HTTP GET /login
allow_anonymous
Content-Type: text/html; charset=utf-8';

-- CSV uploads: each line is one call of a routine; these calls and the endpoint's routine are one transaction.
create function order_line(line int, cells text[]) returns int language sql as $$
    select o.id from demo.order_parcel(cells[1]::demo.size, cells[2]::real, cells[3], cells[4]::int, cells[5]) o
$$;
create function orders_taken(files json) returns json language sql as $$
    select json_agg(json_build_object('file', f ->> 'fileName', 'status', f ->> 'status', 'last_parcel', f -> 'lastResult'))
    from json_array_elements(files) f
$$;
comment on function orders_taken(json) is 'HTTP POST /orders
allow_anonymous
upload for csv
param files is upload metadata
row_command = select demo.order_line($1, $2)';

create function orders_page() returns text language sql immutable return $$<!doctype html>
<meta charset="utf-8"><title>Bicycle couriers: orders</title>
<p>Lines such as <code>box,2,Quay,5,uni</code>: size, weight, street, number, district.</p>
<form id="orders"><input type="file" name="file" accept=".csv" multiple> <button>Order</button></form>
<progress id="sent" value="0" max="1"></progress> <span id="done"></span>
<ul id="messages"></ul>
<script>
const line = text => { const li = document.createElement("li"); li.textContent = text; messages.append(li) };
document.getElementById("orders").onsubmit = event => {
  event.preventDefault();
  const request = new XMLHttpRequest();
  request.upload.onprogress = event => {
    sent.value = event.loaded / event.total;
    done.textContent = `${Math.round(100 * sent.value)} %`;
  };
  request.onload = () => {
    const answer = JSON.parse(request.responseText);
    request.status === 200
      ? answer.forEach(one => line(`${one.file}: ${one.status}, up to parcel ${one.last_parcel}`))
      : line(`${answer.title}; nothing was ordered`);
  };
  request.open("POST", "orders");
  request.send(new FormData(event.target));
};
</script>
$$;
comment on function orders_page() is 'HTTP GET /orders
allow_anonymous
Content-Type: text/html; charset=utf-8';

-- Events: a notice that a running routine raises is sent to subscribers, here only to those of the same round.
create function ride_round(_stops int default 5) returns text language plpgsql as $$
begin
    for stop in 1 .. _stops loop
        perform pg_sleep(0.3);
        raise info 'stop % of %', stop, _stops;
    end loop;
    return 'All delivered.';
end$$;
comment on function ride_round(int) is 'HTTP POST /round
allow_anonymous
sse progress';

create function round_page() returns text language sql immutable return $$<!doctype html>
<meta charset="utf-8"><title>A round</title>
<button id="ride">Ride</button> <progress id="done" max="5" value="0"></progress>
<p id="message">No courier is on the way.</p>
<script>
const say = text => { document.getElementById("message").textContent = text };
document.getElementById("ride").onclick = () => {
  const id = crypto.randomUUID();
  const progress = new EventSource(`round/progress?${id}`);
  progress.onmessage = event => { say(event.data); document.getElementById("done").value += 1 };
  progress.onopen = async () => {
    progress.onopen = null;
    const answer = await fetch("round", { method: "POST", headers: { "X-NpgsqlRest-ID": id } });
    const text = await answer.text();
    // The answer and the events come by different ways; the last event may be the later one.
    setTimeout(() => { progress.close(); say(text) }, 500);
  };
};
</script>
$$;
comment on function round_page() is 'HTTP GET /round-page
allow_anonymous
Content-Type: text/html; charset=utf-8';

-- The viewer of the OpenAPI document: its two files come from a package, everything from this service, nothing inline.
create function api_page() returns text language sql immutable return $$<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Bicycle couriers: the API</title>
<link rel="icon" href="favicon-32x32.png">
<link rel="stylesheet" href="swagger-ui.css">
<div id="api"></div>
<script src="swagger-ui-bundle.js"></script>
<script src="api-page.js"></script>
</html>
$$;
comment on function api_page() is 'HTTP GET /api-page
allow_anonymous
openapi hide
Content-Type: text/html; charset=utf-8
Content-Security-Policy: default-src ''none''; script-src ''self''; style-src ''self'' ''unsafe-inline''; img-src ''self'' data:; connect-src ''self''; base-uri ''none''; form-action ''none''; frame-ancestors ''none''';

create function api_page_script() returns text language sql immutable return $$SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#api",
  validatorUrl: null,
});
$$;
comment on function api_page_script() is 'HTTP GET /api-page.js
allow_anonymous
openapi hide
Content-Type: text/javascript; charset=utf-8';

-- A table without functions: its comment alone makes endpoints that read, add, change and remove rows.
create table complaint (
    id int primary key generated by default as identity,
    parcel int not null references parcel on delete cascade,
    text text not null,
    settled boolean not null default false,
    at date not null default '2026-01-10'
);
insert into complaint (parcel, text) values (7, 'Too late'), (21, 'Wet'), (34, 'The dog was not shy at all');
comment on table complaint is 'What senders were not happy with.
HTTP
allow_anonymous
for select
HTTP GET /complaints
for insert_returning
HTTP PUT /complaints
for update_returning
HTTP POST /complaints/{id}
for delete_returning
HTTP DELETE /complaints/{id}';
