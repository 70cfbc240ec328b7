-- HTTP GET
-- request_headers parameter
-- param _headers default null
select :_headers as h, 1 as n