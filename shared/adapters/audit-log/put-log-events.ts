/**
 * The audit trail in CloudWatch Logs: one PutLogEvents a line, without the SDK's client (200 KB for one call).
 *
 * The log stream is made with the deployment, so that the function may add lines and nothing else. A line that was sent
 * twice because an answer was lost stands there twice, with the same time.
 * Source: CloudWatch Logs API reference, PutLogEvents (sequence tokens are ignored since 2023).
 */
import { createHash, createHmac, type Hash } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';
import type { AuditTrail } from '../../ports/audit-trail.ts';

export interface AuditLogConnection {
  readonly region: string;
  readonly logGroup: string;
  readonly logStream: string;
  readonly credentials: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  };
  /** Only for logs of our own: AWS_ENDPOINT_URL_CLOUDWATCH_LOGS. */
  readonly endpoint?: string;
}

const TIMEOUT_MS = 2_000;
const ATTEMPTS_MAX = 2;
const TARGET = 'Logs_20140328.PutLogEvents';

/** The audit log did not take a line. */
export class AuditLogError extends Error {
  override readonly name = 'AuditLogError';
  readonly code = 'audit-log-failed';
}

/** The connection a Lambda's environment holds. @throws RangeError that names every missing variable */
export function auditLogConnectionFrom(
  environment: Readonly<Record<string, string | undefined>>,
  place: { readonly logGroup: string; readonly logStream: string },
): AuditLogConnection {
  const names = ['AWS_REGION', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const;
  const missing = names.filter((name) => !environment[name]);
  if (missing.length > 0) throw new RangeError(`missing from the environment: ${missing.join(', ')}`);
  const sessionToken = environment['AWS_SESSION_TOKEN'];
  const endpoint = environment['AWS_ENDPOINT_URL_CLOUDWATCH_LOGS'];
  return {
    ...place,
    region: environment['AWS_REGION'] as string,
    credentials: {
      accessKeyId: environment['AWS_ACCESS_KEY_ID'] as string,
      secretAccessKey: environment['AWS_SECRET_ACCESS_KEY'] as string,
      ...(sessionToken ? { sessionToken } : {}),
    },
    ...(endpoint ? { endpoint } : {}),
  };
}

export function cloudWatchAuditTrail(connection: AuditLogConnection, nowMs: () => number): AuditTrail {
  const { region, credentials, logGroup, logStream } = connection;
  const endpoint = new URL(connection.endpoint ?? defaultEndpoint(region));
  const signer = new SignatureV4({ service: 'logs', region, credentials, sha256: Sha256 });

  async function put(body: string): Promise<void> {
    const { headers } = await signer.sign(
      {
        method: 'POST',
        protocol: endpoint.protocol,
        hostname: endpoint.hostname,
        path: '/',
        query: {},
        headers: { host: endpoint.host, 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': TARGET },
        body,
      },
      { signingDate: new Date(nowMs()) },
    );
    const { host: _host, ...sent } = headers;
    const answer = await fetch(endpoint, {
      method: 'POST',
      headers: sent,
      body,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (answer.status !== 200) throw new AuditLogError(`PutLogEvents was answered ${answer.status}`);
    const rejected = ((await answer.json()) as { rejectedLogEventsInfo?: unknown }).rejectedLogEventsInfo;
    if (rejected !== undefined) throw new AuditLogError('PutLogEvents rejected the line');
  }

  return {
    async record(line) {
      const body = JSON.stringify({
        logGroupName: logGroup,
        logStreamName: logStream,
        logEvents: [{ timestamp: nowMs(), message: JSON.stringify(line) }],
      });
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await put(body);
        } catch (cause) {
          if (attempt < ATTEMPTS_MAX) continue;
          throw cause instanceof AuditLogError ? cause : new AuditLogError('no answer to PutLogEvents', { cause });
        }
      }
    },
  };
}

const defaultEndpoint = (region: string): string =>
  `https://logs.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;

class Sha256 {
  #hash: Hash;
  constructor(secret?: unknown) {
    this.#hash = (secret === undefined ? createHash('sha256') : createHmac('sha256', secret as Uint8Array)) as Hash;
  }
  update(data: unknown): void {
    this.#hash.update(data as Uint8Array);
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }
  reset(): void {}
}
