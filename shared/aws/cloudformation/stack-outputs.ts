/** Reads the outputs of a stack. Source: CloudFormation API reference, "DescribeStacks". */
import {
  CloudFormationClient,
  CloudFormationServiceException,
  DescribeStacksCommand,
  type Stack,
} from '@aws-sdk/client-cloudformation';
import { defined } from '../../defined.ts';
import type { AwsCredentials } from '../connection.ts';

/** The outputs cannot be read, or name no such cluster. */
export class StackError extends Error {
  override readonly name = 'StackError';
  /** What the user can do next. */
  readonly next: string;
  constructor(message: string, next: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.next = next;
  }
}

export interface StackRequest {
  readonly stackName: string;
  readonly region: string;
  readonly credentials: AwsCredentials;
  /** AWS_ENDPOINT_URL_CLOUDFORMATION, such as that of a test server. Absent: the endpoint of AWS. */
  readonly endpoint?: string | undefined;
}

export interface DescribedStack {
  /** Such as UPDATE_COMPLETE. */
  readonly status: string;
  /** By name. Empty while a stack is created. */
  readonly outputs: ReadonlyMap<string, string>;
}

const TIMEOUT_MS = 15_000;
const ATTEMPTS_MAX = 2;

/** @throws StackError with the error of CloudFormation and what to do next */
export async function describeStack(request: StackRequest): Promise<DescribedStack> {
  const stack = await fetchStack(request);
  if (stack === undefined) throw noSuchStack(request);
  const outputs = (stack.Outputs ?? []).map(
    ({ OutputKey = '', OutputValue = '' }) => [OutputKey, OutputValue] as const,
  );
  return { status: stack.StackStatus ?? '', outputs: new Map(outputs) };
}

/** A stack with several clusters has their outputs under prefixes. Without an id the plain names are meant. */
export function outputPrefixOf(
  outputs: ReadonlyMap<string, string>,
  wanted: string | undefined,
  stackName: string,
): string {
  if (wanted === undefined) return '';
  const clusters = [...outputs].filter(([name]) => name.endsWith('ClusterId'));
  const found = clusters.find(([, clusterId]) => clusterId === wanted);
  if (found !== undefined) return found[0].slice(0, -'ClusterId'.length);
  throw new StackError(
    `the stack ${stackName} has no cluster ${wanted}`,
    `it has ${clusters.map(([, clusterId]) => clusterId).join(', ') || 'none'}`,
  );
}

async function fetchStack(request: StackRequest): Promise<Stack | undefined> {
  const { stackName, region, credentials, endpoint } = request;
  const client = new CloudFormationClient({
    region,
    credentials: { ...credentials },
    maxAttempts: ATTEMPTS_MAX,
    requestHandler: { requestTimeout: TIMEOUT_MS, throwOnRequestTimeout: true },
    ...defined({ endpoint }),
  });
  try {
    return (await client.send(new DescribeStacksCommand({ StackName: stackName }))).Stacks?.[0];
  } catch (cause) {
    throw faultOf(request, cause);
  } finally {
    client.destroy();
  }
}

const noSuchStack = ({ stackName, region }: StackRequest): StackError =>
  new StackError(
    `no stack ${stackName} in ${region}`,
    'pass --stack and --region; `npx cdk deploy` prints the whole command as output KubeconfigCommand',
  );

interface ResponseError extends Error {
  readonly $response?: { readonly statusCode?: number };
}

function faultOf(request: StackRequest, cause: unknown): StackError {
  if (cause instanceof CloudFormationServiceException) return refusalOf(request, cause);
  const { message, cause: deeper, $response } = cause as ResponseError;
  if ($response !== undefined) {
    return new StackError(
      `CloudFormation responded ${$response.statusCode} without XML`,
      'check whether a proxy between this machine and AWS sent the response',
      { cause },
    );
  }
  const why = deeper instanceof Error ? deeper.message : message;
  return new StackError(
    `no response from CloudFormation: ${why}`,
    'check that this machine is online and that the region is right',
    { cause },
  );
}

function refusalOf(request: StackRequest, cause: CloudFormationServiceException): StackError {
  const { name: code, message } = cause;
  if (code === 'ValidationError' && message.includes('does not exist')) return noSuchStack(request);
  const refusal = `CloudFormation refused (${code}): ${message}`;
  if (/^AccessDenied/.test(code)) {
    return new StackError(refusal, `allow cloudformation:DescribeStacks on stack ${request.stackName}`, { cause });
  }
  if (/Token|SignatureDoesNotMatch|AccessKey|RequestExpired/.test(code)) {
    return new StackError(refusal, 'sign in again, and check the clock of this machine', { cause });
  }
  return new StackError(refusal, 'try again in a minute', { cause });
}
