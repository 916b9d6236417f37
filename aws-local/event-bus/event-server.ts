/**
 * EventBridge on loopback, as far as functions use it: PutEvents appends each event, as a rule would get it, to a file.
 */
import { randomUUID } from 'node:crypto';
import { appendLines } from '../../shared/host/write-file.ts';
import { type AwsJsonServer, startAwsJsonServer } from '../http/aws-json-server.ts';

export type EventServer = AwsJsonServer;

export interface EventServerOptions {
  /** Where events go, a line each. */
  readonly file: string;
  readonly region: string;
  readonly accountId: string;
}

const ENTRIES_MAX = 10;
/** Of all entries. The smallest limit that EventBridge ever had. */
const BYTES_MAX = 262_144;
const TIME_BYTES = 14;

interface Entry {
  readonly EventBusName?: unknown;
  readonly Source?: unknown;
  readonly DetailType?: unknown;
  readonly Detail?: unknown;
  /** Epoch seconds. */
  readonly Time?: unknown;
}

export const startEventServer = ({ file, region, accountId }: EventServerOptions): Promise<EventServer> =>
  startAwsJsonServer({
    service: 'events',
    malformed: 'ValidationException',
    calls: {
      'AWSEvents.PutEvents'(body) {
        const { Entries: entries } = body as { Entries?: Entry[] };
        const isBatch = Array.isArray(entries) && entries.length > 0 && entries.length <= ENTRIES_MAX;
        if (!isBatch || entries.reduce((sum, entry) => sum + bytesOf(entry), 0) > BYTES_MAX) {
          return { kind: 'refused', type: 'ValidationException' };
        }
        const taken = entries.map((entry) => eventOf(entry, { region, accountId }));
        const lines = taken.flatMap((event) => (event === undefined ? [] : [`${JSON.stringify(event)}\n`]));
        if (lines.length > 0) appendLines(file, lines.join(''));
        return {
          kind: 'answer',
          body: {
            FailedEntryCount: entries.length - lines.length,
            Entries: taken.map((event) =>
              event === undefined ? { ErrorCode: 'MalformedDetail', ErrorMessage: 'not JSON' } : { EventId: event.id },
            ),
          },
        };
      },
    },
  });

const bytesOf = ({ Source, DetailType, Detail, Time }: Entry): number =>
  [Source, DetailType, Detail].reduce<number>((sum, text) => sum + Buffer.byteLength(String(text)), 0) +
  (Time === undefined ? 0 : TIME_BYTES);

/** The event as rules and targets get it; undefined when its detail is no JSON. */
function eventOf(entry: Entry, at: { readonly region: string; readonly accountId: string }) {
  let detail: unknown;
  try {
    detail = JSON.parse(String(entry.Detail));
  } catch {
    return undefined;
  }
  return {
    version: '0',
    id: randomUUID(),
    'detail-type': String(entry.DetailType),
    source: String(entry.Source),
    account: at.accountId,
    time: new Date(Number(entry.Time) * 1_000).toISOString().replace('.000Z', 'Z'),
    region: at.region,
    resources: [],
    detail,
  };
}
