-- Requests to decide, each with an id of its own; with an argument, batches of that many lines.
local place, count, size = 0, 0, 1
local stamp = os.time()
local context = "[0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1.0]"

function setup(thread)
  thread:set("number", place)
  place = place + 1
end

function init(args)
  size = tonumber(args[1] or "1")
end

local function line()
  count = count + 1
  return '{"event_id":"' .. stamp .. "-" .. number .. "-" .. count .. '","context":' .. context .. "}"
end

function request()
  local headers = {["Content-Type"] = "application/json"}
  if size == 1 then
    return wrk.format("POST", "/v1/loops/home/decide", headers, line())
  end
  local lines = {}
  for k = 1, size do
    lines[k] = line()
  end
  return wrk.format("POST", "/v1/loops/home/decide:batch", headers, table.concat(lines, "\n"))
end

function done(summary, latency)
  io.write(string.format(
    'RESULT {"rate": %.1f, "p50": %.6f, "p99": %.6f, "errors": %d}\n',
    1e6 * summary.requests / summary.duration,
    latency:percentile(50) / 1e6,
    latency:percentile(99) / 1e6,
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
  ))
end
