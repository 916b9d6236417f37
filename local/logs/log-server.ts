/** CloudWatch Logs on loopback, as far as functions use it: PutLogEvents appends its lines to a file a log group. */
import { appendFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

export interface LogServer {
  /** `http://127.0.0.1:port`. */
  readonly endpoint: string;
  stop(): Promise<void>;
}

const BODY_BYTES_MAX = 1_048_576;
const TARGET = 'Logs_20140328.PutLogEvents';

interface PutLogEvents {
  readonly logGroupName?: unknown;
  readonly logEvents?: readonly { readonly message?: unknown }[];
}

/** @param fileOf where the lines of a log group go, below `directory` */
export async function startLogServer(directory: string, fileOf: (logGroup: string) => string): Promise<LogServer> {
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
        if (bytes > BODY_BYTES_MAX) return refuse('InvalidParameterException');
        parts.push(part);
      }
      const signed = /^AWS4-HMAC-SHA256 Credential=[^/]+\/\d{8}\/[^/]+\/logs\//.test(
        request.headers.authorization ?? '',
      );
      if (!signed) return refuse('MissingAuthenticationTokenException');
      if (request.headers['x-amz-target'] !== TARGET) return refuse('UnknownOperationException');
      const { logGroupName, logEvents } = JSON.parse(Buffer.concat(parts).toString('utf8')) as PutLogEvents;
      if (typeof logGroupName !== 'string' || !Array.isArray(logEvents)) return refuse('InvalidParameterException');
      const lines = logEvents.map(({ message }) => `${String(message)}\n`).join('');
      await appendFile(join(directory, fileOf(logGroupName)), lines, { mode: 0o600 });
      answer(200, {});
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
