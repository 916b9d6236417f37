/** The AWS account of a cluster: clients with bounded waits, and their errors in one form. */
import type { AwsCredentials } from '../../shared/aws/connection.ts';
import { defined } from '../../shared/defined.ts';
import { CommandError, type CommandIo } from '../command.ts';

export interface AwsAccount {
  readonly region: string;
  readonly credentials: AwsCredentials;
  readonly environment: CommandIo['environment'];
}

const TIMEOUT_MS = 10_000;
const ATTEMPTS_MAX = 2;

/** `service`: as in AWS_ENDPOINT_URL_<service> (AWS SDKs Reference Guide, "Service-specific endpoints"). */
export const clientOptions = ({ region, credentials, environment }: AwsAccount, service: string) => ({
  region,
  credentials: { ...credentials },
  maxAttempts: ATTEMPTS_MAX,
  requestHandler: { requestTimeout: TIMEOUT_MS, connectionTimeout: TIMEOUT_MS, throwOnRequestTimeout: true },
  ...defined({ endpoint: environment[`AWS_ENDPOINT_URL_${service}`] ?? environment['AWS_ENDPOINT_URL'] }),
});

interface Client {
  destroy(): void;
}

/**
 * Calls one action and closes the client.
 *
 * @throws CommandError with the error of AWS and what to do next. `action`: as in IAM, such as
 * lambda:GetAccountSettings
 */
export async function callAws<Used extends Client, Result>(
  client: Used,
  action: string,
  call: (client: Used) => Promise<Result>,
): Promise<Result> {
  try {
    return await call(client);
  } catch (cause) {
    throw awsFault(action, cause);
  } finally {
    client.destroy();
  }
}

interface AwsError extends Error {
  readonly $metadata?: { readonly httpStatusCode?: number };
}

function awsFault(action: string, cause: unknown): CommandError {
  const { name, message, $metadata, cause: deeper } = cause as AwsError;
  if ($metadata?.httpStatusCode === undefined) {
    const why = message === '' && deeper instanceof Error ? deeper.message : message;
    return new CommandError(
      `${action}: no response from AWS: ${why}`,
      'check that this machine is online, and --region',
      {
        cause,
      },
    );
  }
  const refusal = `${action}: ${name}: ${message}`;
  if (/AccessDenied|UnauthorizedOperation|NotAuthorized/.test(name)) {
    return new CommandError(refusal, `allow ${action} for your role`, { cause });
  }
  if (/Token|Signature|AccessKey|Expired|Credential/.test(name)) {
    return new CommandError(refusal, 'sign in to AWS again, and check the clock of this machine', { cause });
  }
  return new CommandError(refusal, 'try again in a minute', { cause });
}
