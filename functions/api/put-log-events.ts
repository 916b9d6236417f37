/**
 * The audit trail in CloudWatch Logs: one PutLogEvents per line, without the SDK's client (200 KB for one call).
 *
 * The deployment creates the log stream, so the function only needs permission to add lines. If a response is lost, the
 * line is sent again and appears twice, with the same time. Source: CloudWatch Logs API reference, PutLogEvents
 * (sequence tokens are ignored since 2023).
 */
import type { AuditTrail } from '../../shared/access/audit.ts';
import { type AwsConnection, awsConnectionFrom } from '../../shared/aws/connection.ts';
import { signedPost } from '../../shared/aws/signed-post.ts';

export interface AuditLogConnection extends AwsConnection {
  readonly logGroup: string;
  readonly logStream: string;
}

const TIMEOUT_MS = 2_000;
const ATTEMPTS_MAX = 2;
const TARGET = 'Logs_20140328.PutLogEvents';

/** The audit log did not accept a line. */
export class AuditLogError extends Error {
  override readonly name = 'AuditLogError';
  readonly code = 'audit-log-failed';
}

/** @throws RangeError that names every missing variable */
export const auditLogConnectionFrom = (
  environment: Readonly<Record<string, string | undefined>>,
  place: { readonly logGroup: string; readonly logStream: string },
): AuditLogConnection => ({ ...place, ...awsConnectionFrom(environment, 'AWS_ENDPOINT_URL_CLOUDWATCH_LOGS') });

export function cloudWatchAuditTrail(connection: AuditLogConnection, nowMs: () => number): AuditTrail {
  const { logGroup, logStream } = connection;
  const post = signedPost(connection, { service: 'logs', target: TARGET, timeoutMs: TIMEOUT_MS });

  async function put(body: string): Promise<void> {
    const { status, body: text } = await post(body, nowMs());
    if (status !== 200) throw new AuditLogError(`PutLogEvents returned status ${status}`);
    const rejected = (JSON.parse(text) as { rejectedLogEventsInfo?: unknown }).rejectedLogEventsInfo;
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
          throw cause instanceof AuditLogError ? cause : new AuditLogError('no response to PutLogEvents', { cause });
        }
      }
    },
  };
}
