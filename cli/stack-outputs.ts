/**
 * The outputs of a deployed stack: one DescribeStacks, by CloudFormation's query protocol.
 * Source: CloudFormation API reference, "DescribeStacks", "Common errors".
 */
import { type AwsCredentials, endpointOf } from '../shared/adapters/aws-connection/connection.ts';
import { requestSigner } from '../shared/adapters/aws-connection/signature.ts';
import { childOf, parseXml, textOf, type XmlElement } from '../shared/adapters/aws-connection/xml.ts';
import { CommandError } from './command.ts';

export interface StackRequest {
  readonly stackName: string;
  readonly region: string;
  readonly credentials: AwsCredentials;
  readonly nowMs: number;
  /** Only for a stand-in of our own: AWS_ENDPOINT_URL_CLOUDFORMATION. */
  readonly endpoint?: string | undefined;
}

export interface DescribedStack {
  /** Such as UPDATE_COMPLETE. */
  readonly status: string;
  /** By name; empty while a stack is made. */
  readonly outputs: ReadonlyMap<string, string>;
}

const API_VERSION = '2010-05-15';
const TIMEOUT_MS = 15_000;
const ATTEMPTS_MAX = 2;

/** @throws CommandError with what CloudFormation says, and what to do about it */
export async function describeStack(request: StackRequest): Promise<DescribedStack> {
  const { status, text } = await ask(request);
  let root: XmlElement;
  try {
    root = parseXml(text);
  } catch (cause) {
    throw new CommandError(`CloudFormation answered ${status}, and no XML`, 'is a proxy between?', { cause });
  }
  if (status !== 200) throw refusal(request, root, status);
  const stack = members(childOf(childOf(root, 'DescribeStacksResult'), 'Stacks'))[0];
  if (stack === undefined) throw noSuchStack(request);
  const outputs = members(childOf(stack, 'Outputs')).map(
    (output) => [textOf(output, 'OutputKey') ?? '', textOf(output, 'OutputValue') ?? ''] as const,
  );
  return { status: textOf(stack, 'StackStatus') ?? '', outputs: new Map(outputs) };
}

const members = (list: XmlElement | undefined): readonly XmlElement[] =>
  list?.children.filter(({ name }) => name === 'member') ?? [];

const noSuchStack = ({ stackName, region }: StackRequest): CommandError =>
  new CommandError(
    `there is no stack ${stackName} in ${region}`,
    'give --stack and --region; the outputs of `npx cdk deploy` have the whole line as KubeconfigCommand',
  );

function refusal(request: StackRequest, root: XmlElement, status: number): CommandError {
  const error = childOf(root, 'Error');
  const code = textOf(error, 'Code') ?? String(status);
  const message = textOf(error, 'Message') ?? '';
  if (code === 'ValidationError' && message.includes('does not exist')) return noSuchStack(request);
  const said = `CloudFormation refused (${code}): ${message}`;
  if (/^AccessDenied/.test(code)) {
    return new CommandError(said, `the action cloudformation:DescribeStacks on stack ${request.stackName} is needed`);
  }
  if (/Token|SignatureDoesNotMatch|AccessKey|RequestExpired/.test(code)) {
    return new CommandError(said, 'sign in again, and see that the clock of this machine is right');
  }
  return new CommandError(said, 'try again in a minute');
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function ask(request: StackRequest): Promise<Answer> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const answer = await askOnce(request);
      if (answer.status < 500 || attempt >= ATTEMPTS_MAX) return answer;
    } catch (cause) {
      if (attempt < ATTEMPTS_MAX) continue;
      const { message, cause: deeper } = cause as Error;
      const why = deeper instanceof Error ? deeper.message : message;
      throw new CommandError(`no answer from CloudFormation: ${why}`, 'is this machine online, the region right?', {
        cause,
      });
    }
  }
}

async function askOnce(request: StackRequest): Promise<Answer> {
  const { stackName, region, credentials, nowMs } = request;
  const url = endpointOf(request, 'cloudformation');
  const body = new URLSearchParams({ Action: 'DescribeStacks', Version: API_VERSION, StackName: stackName }).toString();
  const sign = requestSigner({
    region,
    credentials,
    host: url.host,
    service: 'cloudformation',
    contentType: 'application/x-www-form-urlencoded; charset=utf-8',
  });
  // fetch sends the host of the address itself.
  const { host: _host, ...headers } = sign({ body, nowMs });
  const answer = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(TIMEOUT_MS) });
  return { status: answer.status, text: await answer.text() };
}
