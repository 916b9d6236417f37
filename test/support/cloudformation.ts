/**
 * Stands for CloudFormation and CloudWatch Logs: answers in XML, and JSON, if it computes the same signature as the
 * request. GET /deploy?NAME stands for the CDK.
 */

import { createServer, type IncomingMessage } from 'node:http';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { sha256, signatureOf } from './signature-v4.ts';

export interface StandInStack {
  readonly status: string;
  readonly outputs: Readonly<Record<string, string>>;
  /** Physical ids by logical id and type, such as `ApiFunction AWS::Lambda::Function`. */
  readonly resources?: Readonly<Record<string, string>>;
}

export interface StandInCloudFormation {
  /** Of CreateStack, and of the CDK. */
  newStack: (name: string) => StandInStack;
  /** They outlive their stack. */
  readonly logGroups: Set<string>;
  /** http://127.0.0.1:PORT */
  readonly url: string;
  readonly stacks: Map<string, StandInStack>;
  /** Answers of the next requests, before anything is looked at. */
  readonly planned: { readonly status: number; readonly text: string }[];
  readonly asked: { readonly action: string | null; readonly stackName: string | null }[];
  close(): Promise<void>;
}

const escaped = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

export const errorAnswer = (code: string, message: string): string =>
  `<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><Error><Type>Sender</Type><Code>${code}</Code><Message>${escaped(message)}</Message></Error><RequestId>1</RequestId></ErrorResponse>`;

/** `secretAccessKey` signs; `region` is the one it serves. */
export async function startCloudFormation(secretAccessKey: string, region: string): Promise<StandInCloudFormation> {
  const stacks = new Map<string, StandInStack>();
  const planned: { status: number; text: string }[] = [];
  const asked: { action: string | null; stackName: string | null }[] = [];
  const logGroups = new Set<string>();
  let newStack = (_name: string): StandInStack => ({ status: 'CREATE_COMPLETE', outputs: {} });

  function create(name: string): void {
    const stack = newStack(name);
    stacks.set(name, stack);
    for (const [key, id] of Object.entries(stack.resources ?? {})) if (key.endsWith('::LogGroup')) logGroups.add(id);
  }

  function logAnswer(action: string, body: string): { status: number; text: string } {
    const input = JSON.parse(body) as { readonly logGroupName?: string; readonly logGroupNamePrefix?: string };
    if (action === 'DescribeLogGroups') {
      const found = [...logGroups].filter((name) => name.startsWith(String(input.logGroupNamePrefix)));
      return { status: 200, text: JSON.stringify({ logGroups: found.map((logGroupName) => ({ logGroupName })) }) };
    }
    if (logGroups.delete(String(input.logGroupName))) return { status: 200, text: '' };
    return { status: 400, text: JSON.stringify({ __type: 'ResourceNotFoundException' }) };
  }

  function answer(request: IncomingMessage, body: string): { status: number; text: string } {
    if (request.method === 'GET') {
      create(request.url?.split('?')[1] ?? '');
      return { status: 200, text: '' };
    }
    const target = String(request.headers['x-amz-target'] ?? '');
    if (target !== '') return logAnswer(target.split('.')[1] ?? '', body);
    const parameters = new URLSearchParams(body);
    const stackName = parameters.get('StackName');
    asked.push({ action: parameters.get('Action'), stackName });
    const next = planned.shift();
    if (next !== undefined) return next;
    if (!isSigned(request, body, secretAccessKey, region)) {
      return { status: 403, text: errorAnswer('SignatureDoesNotMatch', 'The signature does not match.') };
    }
    const action = parameters.get('Action');
    if (action === 'CreateStack') {
      create(String(stackName));
      return { status: 200, text: resultOf('CreateStack', `<StackId>${stackName}</StackId>`) };
    }
    if (action === 'DeleteStack') {
      stacks.delete(String(stackName));
      return { status: 200, text: resultOf('DeleteStack', '') };
    }
    const stack = stacks.get(stackName ?? '');
    if (stack === undefined) {
      return { status: 400, text: errorAnswer('ValidationError', `Stack with id ${stackName} does not exist`) };
    }
    if (action === 'ListStackResources') {
      const members = Object.entries(stack.resources ?? {}).map(([key, id]) => {
        const [logicalId, type] = key.split(' ');
        return `<member><LogicalResourceId>${logicalId}</LogicalResourceId><ResourceType>${type}</ResourceType><PhysicalResourceId>${escaped(id)}</PhysicalResourceId></member>`;
      });
      const list = `<StackResourceSummaries>${members.join('')}</StackResourceSummaries>`;
      return { status: 200, text: resultOf('ListStackResources', list) };
    }
    const outputs = Object.entries(stack.outputs).map(
      ([key, value]) =>
        `<member><OutputKey>${key}</OutputKey><OutputValue>${escaped(value)}</OutputValue><Description>a &amp; b</Description></member>`,
    );
    const list = outputs.length === 0 ? '' : `\n      <Outputs>${outputs.join('\n')}</Outputs>`;
    return {
      status: 200,
      text: `<?xml version="1.0"?>
<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">
  <DescribeStacksResult><Stacks><member>
      <StackName>${stackName}</StackName>
      <StackStatus>${stack.status}</StackStatus>
      <Capabilities><member>CAPABILITY_IAM</member></Capabilities>${list}
      <Tags/>
  </member></Stacks></DescribeStacksResult>
  <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>
</DescribeStacksResponse>`,
    };
  }

  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => {
      body += part;
    });
    request.on('end', () => {
      const { status, text } = answer(request, body);
      response.writeHead(status, { 'content-type': 'text/xml' }).end(text);
    });
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    stacks,
    planned,
    asked,
    logGroups,
    get newStack() {
      return newStack;
    },
    set newStack(next) {
      newStack = next;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const resultOf = (action: string, content: string): string =>
  `<${action}Response xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><${action}Result>${content}</${action}Result></${action}Response>`;

function isSigned({ headers }: IncomingMessage, body: string, secretAccessKey: string, region: string): boolean {
  const [, signedHeaders = '', signature = ''] =
    /SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(headers.authorization ?? '') ?? [];
  const date = String(headers['x-amz-date']);
  const lines = signedHeaders.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const canonical = `POST\n/\n\n${lines.join('')}\n${signedHeaders}\n${sha256(body)}`;
  return signatureOf({ secretAccessKey, date, region, service: 'cloudformation', canonical }) === signature;
}
