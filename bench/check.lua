-- wrk's side of the promise that every response is checked: status 200, and the body equal to the expected one.
-- LuaJIT interns strings, so an equal body costs one hash lookup and the comparison itself one pointer.

local threads = {}

wrong_status, wrong_body = 0, 0

local function slurp(path)
    local file = assert(io.open(path, "rb"))
    local content = file:read("*a")
    file:close()
    return content
end

function setup(thread)
    table.insert(threads, thread)
end

function init()
    expected = slurp(os.getenv("BENCH_EXPECTED"))
    local body = os.getenv("BENCH_BODY")
    if body then
        wrk.method = "POST"
        wrk.headers["Content-Type"] = "application/json"
        wrk.body = slurp(body)
    end
end

function response(status, _, body)
    if status ~= 200 then
        wrong_status = wrong_status + 1
    elseif body ~= expected then
        wrong_body = wrong_body + 1
    end
end

function done(summary, latency, _)
    local statuses, bodies = 0, 0
    for _, thread in ipairs(threads) do
        statuses = statuses + thread:get("wrong_status")
        bodies = bodies + thread:get("wrong_body")
    end
    local errors = summary.errors
    io.write(string.format(
        'RESULT {"requests": %d, "microseconds": %d, "p50": %d, "p99": %d, '
        .. '"wrong_status": %d, "wrong_body": %d, "connect": %d, "read": %d, "write": %d, "timeout": %d}\n',
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
        statuses, bodies, errors.connect, errors.read, errors.write, errors.timeout))
end
