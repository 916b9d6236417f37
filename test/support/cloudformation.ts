/** Stands for CloudFormation: answers DescribeStacks in XML if it computes the same signature as the request. */

import { createServer, type IncomingMessage } from 'node:http';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { sha256, signatureOf } from './signature-v4.ts';

export interface StandInStack {
  readonly status: string;
  readonly outputs: Readonly<Record<string, string>>;
}

export interface StandInCloudFormation {
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

  function answer(request: IncomingMessage, body: string): { status: number; text: string } {
    const parameters = new URLSearchParams(body);
    const stackName = parameters.get('StackName');
    asked.push({ action: parameters.get('Action'), stackName });
    const next = planned.shift();
    if (next !== undefined) return next;
    if (!isSigned(request, body, secretAccessKey, region)) {
      return { status: 403, text: errorAnswer('SignatureDoesNotMatch', 'The signature does not match.') };
    }
    const stack = stacks.get(stackName ?? '');
    if (stack === undefined) {
      return { status: 400, text: errorAnswer('ValidationError', `Stack with id ${stackName} does not exist`) };
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
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function isSigned({ headers }: IncomingMessage, body: string, secretAccessKey: string, region: string): boolean {
  const [, signedHeaders = '', signature = ''] =
    /SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(headers.authorization ?? '') ?? [];
  const date = String(headers['x-amz-date']);
  const lines = signedHeaders.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const canonical = `POST\n/\n\n${lines.join('')}\n${signedHeaders}\n${sha256(body)}`;
  return signatureOf({ secretAccessKey, date, region, service: 'cloudformation', canonical }) === signature;
}
