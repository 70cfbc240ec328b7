-- A clerk signs in: the row is checked against the password, and its other columns go into a cookie.
-- HTTP POST /sign-in
-- login
-- @define_param password
select password_hash as hash, clerk_id as user_id, name as user_name from shop.clerk where name = :name;
