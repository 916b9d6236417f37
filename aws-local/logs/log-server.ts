/**
 * CloudWatch Logs on loopback, as far as functions and `nodekeeper prove` use it. PutLogEvents appends its lines to a
 * file a log group. FilterLogEvents answers what is in memory, without patterns. Source: CloudWatch Logs API Reference.
 */
import { join } from 'node:path';
import { appendLines } from '../../shared/host/write-file.ts';
import { type AwsJsonAnswer, type AwsJsonServer, startAwsJsonServer } from '../http/aws-json-server.ts';
import { LogGroups } from './log-groups.ts';

export interface LogServer extends AwsJsonServer {
  /** What PutLogEvents wrote, and what the runtime adds of functions. */
  readonly groups: LogGroups;
}

interface LogEvent {
  readonly timestamp?: unknown;
  readonly message?: unknown;
}

interface PutLogEvents {
  readonly logGroupName?: unknown;
  readonly logEvents?: readonly LogEvent[];
}

interface FilterLogEvents {
  readonly logGroupName?: unknown;
  readonly limit?: number;
  readonly nextToken?: string;
}

/** The keys of FilterLogEvents that are read here. Another one, such as a pattern, would be missed. */
const FILTER_KEYS = new Set(['logGroupName', 'limit', 'nextToken']);
const PAGE_MAX = 10_000;
const BATCH_EVENTS_MAX = 10_000;
const BATCH_BYTES_MAX = 1_048_576;
/** What each event counts besides its text. */
const EVENT_BYTES = 26;
const INVALID: AwsJsonAnswer = { kind: 'refused', type: 'InvalidParameterException' };

/** @param fileOf where the lines of a log group go, below `directory` */
export async function startLogServer(directory: string, fileOf: (logGroup: string) => string): Promise<LogServer> {
  const groups = new LogGroups();
  const server = await startAwsJsonServer({
    service: 'logs',
    malformed: 'InvalidParameterException',
    calls: {
      'Logs_20140328.PutLogEvents'(body) {
        const { logGroupName, logEvents } = body as PutLogEvents;
        if (typeof logGroupName !== 'string' || !Array.isArray(logEvents) || !isBatch(logEvents)) return INVALID;
        const lines = logEvents.map(({ message }) => `${String(message)}\n`).join('');
        // The asynchronous form waits for the thread pool three times per line.
        appendLines(join(directory, fileOf(logGroupName)), lines);
        for (const { timestamp, message } of logEvents) {
          groups.add(logGroupName, { timestamp: Number(timestamp), message: String(message) });
        }
        return { kind: 'answer', body: {} };
      },
      'Logs_20140328.FilterLogEvents': (body) => filtered(groups, body as FilterLogEvents),
    },
  });
  return { ...server, groups };
}

/** Events in order of time, with texts, of a size that AWS accepts. Their age is not checked. */
function isBatch(events: readonly LogEvent[]): boolean {
  let bytes = 0;
  let lastMs = 0;
  for (const { timestamp, message } of events) {
    if (typeof message !== 'string' || message === '' || !Number.isInteger(timestamp)) return false;
    if (Number(timestamp) < lastMs) return false;
    lastMs = Number(timestamp);
    bytes += Buffer.byteLength(message) + EVENT_BYTES;
  }
  return events.length > 0 && events.length <= BATCH_EVENTS_MAX && bytes <= BATCH_BYTES_MAX;
}

/** The token of a page is the number of events before it. */
function filtered(groups: LogGroups, request: FilterLogEvents): AwsJsonAnswer {
  const { logGroupName, limit = PAGE_MAX, nextToken = '0' } = request;
  const isKnown = Object.keys(request).every((key) => FILTER_KEYS.has(key));
  if (!isKnown || typeof logGroupName !== 'string' || !/^\d+$/.test(nextToken)) return INVALID;
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= PAGE_MAX)) return INVALID;
  const events = groups.events(logGroupName);
  if (events === undefined) return { kind: 'refused', type: 'ResourceNotFoundException' };
  const end = Number(nextToken) + limit;
  const more = end < events.length ? { nextToken: String(end) } : {};
  return { kind: 'answer', body: { events: events.slice(Number(nextToken), end), searchedLogStreams: [], ...more } };
}
