/** CloudWatch Logs on loopback, as far as functions use it: PutLogEvents appends its lines to a file a log group. */
import { join } from 'node:path';
import { appendLines } from '../../shared/host/write-file.ts';
import { type AwsJsonServer, startAwsJsonServer } from '../http/aws-json-server.ts';

export type LogServer = AwsJsonServer;

interface PutLogEvents {
  readonly logGroupName?: unknown;
  readonly logEvents?: readonly { readonly message?: unknown }[];
}

/** @param fileOf where the lines of a log group go, below `directory` */
export const startLogServer = (directory: string, fileOf: (logGroup: string) => string): Promise<LogServer> =>
  startAwsJsonServer({
    service: 'logs',
    malformed: 'InvalidParameterException',
    calls: {
      'Logs_20140328.PutLogEvents'(body) {
        const { logGroupName, logEvents } = body as PutLogEvents;
        if (typeof logGroupName !== 'string' || !Array.isArray(logEvents)) {
          return { kind: 'refused', type: 'InvalidParameterException' };
        }
        const lines = logEvents.map(({ message }) => `${String(message)}\n`).join('');
        // The asynchronous form waits for the thread pool three times per line.
        appendLines(join(directory, fileOf(logGroupName)), lines);
        return { kind: 'answer', body: {} };
      },
    },
  });
