import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { startCallRecorder } from './recorder.ts';

async function recording() {
  const folder = mkdtempSync(join(tmpdir(), 'nk-calls-'));
  const seen: (string | undefined)[] = [];
  const service = createServer((request, response) => {
    seen.push(request.headers.authorization);
    request.resume().on('end', () => response.writeHead(400, { 'x-from': 'service' }).end('{"answer":1}'));
  });
  const port = await listenOnLoopback(service);
  const file = join(folder, 'calls.jsonl');
  const recorder = await startCallRecorder({
    region: 'us-east-1',
    accountId: '000000000000',
    assembly: '/assembly',
    file,
    services: { dynamodb: `http://127.0.0.1:${port}` },
    tagsOf: () => ({}),
  });
  onTestFinished(async () => {
    await recorder.stop();
    service.close();
    rmSync(folder, { recursive: true });
  });
  const send = (keyId: string, service: string, target: string, body: string) =>
    fetch(recorder.endpoint, {
      method: 'POST',
      headers: {
        authorization: `AWS4-HMAC-SHA256 Credential=${keyId}/20260101/us-east-1/${service}/aws4_request, Signature=0`,
        'x-amz-target': target,
      },
      body,
    });
  return { recorder, send, seen, file };
}

const GET = JSON.stringify({ TableName: 'T', Key: { pk: { S: 'a' } } });

it('passes requests and answers on unchanged, under the one key id that engines know', async () => {
  const { recorder, send, seen } = await recording();
  const answer = await send(recorder.accessKeyId('api'), 'dynamodb', 'DynamoDB_20120810.GetItem', GET);
  expect([answer.status, answer.headers.get('x-from'), await answer.text()]).toEqual([400, 'service', '{"answer":1}']);
  expect(seen).toEqual(['AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, Signature=0']);
});

it('distinguishes functions by their credentials, and counts equal calls', async () => {
  const { recorder, send } = await recording();
  for (const name of ['api', 'api', 'pod-gc']) {
    await send(recorder.accessKeyId(name), 'dynamodb', 'DynamoDB_20120810.GetItem', GET);
  }
  expect(recorder.calls.map(({ functionName, action, count }) => [functionName, action, count])).toEqual([
    ['api', 'dynamodb:GetItem', 2],
    ['pod-gc', 'dynamodb:GetItem', 1],
  ]);
});

it('notes a call to a service that does not run here, and cuts it off', async () => {
  const { recorder, send } = await recording();
  await expect(send(recorder.accessKeyId('api'), 'kms', 'TrentService.Sign', '{}')).rejects.toThrow();
  expect(recorder.calls).toMatchObject([{ functionName: 'api', action: 'kms:Sign', resource: '*' }]);
});

it('writes the record when it stops, with where it was made', async () => {
  const { recorder, file } = await recording();
  recorder.note('api', { action: 'logs:PutLogEvents', resource: 'arn', context: {} });
  await recorder.stop();
  const [head, call] = readFileSync(file, 'utf8')
    .split('\n', 2)
    .map((line) => JSON.parse(line) as unknown);
  expect(head).toEqual({ region: 'us-east-1', accountId: '000000000000', assembly: '/assembly', complete: true });
  expect(call).toMatchObject({ functionName: 'api', by: 'lambda', action: 'logs:PutLogEvents', count: 1 });
});

it('says that it is not complete when it could not read what was asked', async () => {
  const { recorder, send, file } = await recording();
  await expect(
    send(recorder.accessKeyId('api'), 'dynamodb', 'DynamoDB_20120810.GetItem', 'not JSON'),
  ).rejects.toThrow();
  await recorder.stop();
  expect(JSON.parse(readFileSync(file, 'utf8').split('\n')[0]!)).toMatchObject({ complete: false });
});
