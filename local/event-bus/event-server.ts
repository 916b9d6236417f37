/** EventBridge on loopback, as far as functions use it: PutEvents appends each event, as a rule would get it, to a file. */
import { randomUUID } from 'node:crypto';
import { appendFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface EventServer {
  /** `http://127.0.0.1:port`. */
  readonly endpoint: string;
  stop(): Promise<void>;
}

export interface EventServerOptions {
  /** Where events go, a line each. */
  readonly file: string;
  readonly region: string;
  readonly accountId: string;
}

const BODY_BYTES_MAX = 1_048_576;
const ENTRIES_MAX = 10;
const TARGET = 'AWSEvents.PutEvents';

interface Entry {
  readonly EventBusName?: unknown;
  readonly Source?: unknown;
  readonly DetailType?: unknown;
  readonly Detail?: unknown;
  /** Epoch seconds. */
  readonly Time?: unknown;
}

export async function startEventServer({ file, region, accountId }: EventServerOptions): Promise<EventServer> {
  const server = createServer(async (request, response) => {
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' }).end(JSON.stringify(body));
    };
    const refuse = (type: string): void => answer(400, { __type: type });
    try {
      const parts: Buffer[] = [];
      let bytes = 0;
      for await (const part of request as AsyncIterable<Buffer>) {
        bytes += part.byteLength;
        if (bytes > BODY_BYTES_MAX) return refuse('ValidationException');
        parts.push(part);
      }
      const signed = /^AWS4-HMAC-SHA256 Credential=[^/]+\/\d{8}\/[^/]+\/events\//.test(
        request.headers.authorization ?? '',
      );
      if (!signed) return refuse('MissingAuthenticationTokenException');
      if (request.headers['x-amz-target'] !== TARGET) return refuse('UnknownOperationException');
      const { Entries: entries } = JSON.parse(Buffer.concat(parts).toString('utf8')) as { Entries?: Entry[] };
      if (!Array.isArray(entries) || entries.length === 0 || entries.length > ENTRIES_MAX) {
        return refuse('ValidationException');
      }
      const taken = entries.map((entry) => eventOf(entry, { region, accountId }));
      const lines = taken.flatMap((event) => (event === undefined ? [] : [`${JSON.stringify(event)}\n`]));
      if (lines.length > 0) await appendFile(file, lines.join(''), { mode: 0o600 });
      answer(200, {
        FailedEntryCount: entries.length - lines.length,
        Entries: taken.map((event) =>
          event === undefined ? { ErrorCode: 'MalformedDetail', ErrorMessage: 'not JSON' } : { EventId: event.id },
        ),
      });
    } catch (error) {
      answer(500, { __type: 'InternalFailure', message: String(error) });
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

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
