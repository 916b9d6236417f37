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

interface PutLogEvents {
  readonly logGroupName?: unknown;
  readonly logEvents?: readonly { readonly timestamp?: unknown; readonly message?: unknown }[];
}

interface FilterLogEvents {
  readonly logGroupName?: unknown;
  readonly limit?: number;
  readonly nextToken?: string;
}

/** The keys of FilterLogEvents that are read here. Another one, such as a pattern, would be missed. */
const FILTER_KEYS = new Set(['logGroupName', 'limit', 'nextToken']);
const PAGE_MAX = 10_000;
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
        if (typeof logGroupName !== 'string' || !Array.isArray(logEvents)) return INVALID;
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
