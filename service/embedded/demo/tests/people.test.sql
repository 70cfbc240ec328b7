-- Who may see what.

/*
GET /payroll

HTTP/1.1 401
*/

/*
GET /payroll
# @claim user_id=1
# @claim user_roles=courier

HTTP/1.1 403
*/

/*
GET /payroll
# @claim user_id=4
# @claim user_roles=courier
# @claim user_roles=dispatcher

HTTP/1.1 200
*/

select jsonb_array_length(body::jsonb) = 12, 'all couriers are paid' from _response_3;

/*
GET /my/parcels
# @claim user_id=1
# @claim user_roles=courier
*/

select jsonb_array_length(body::jsonb) = (select count(*) from demo.parcel where courier = 1), 'a courier sees the parcels that are assigned to them'
from _response_4;
