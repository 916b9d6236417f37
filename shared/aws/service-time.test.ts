import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { dynamoDbClient } from './dynamodb-client.ts';
import { serviceTimeMs } from './service-time.ts';

it('is the date of the response, whatever the clock of this machine says', async () => {
  let date: string | undefined = 'Sat, 28 Nov 2020 12:00:07 GMT';
  const server = createServer((request, response) => {
    request.resume();
    response.sendDate = false;
    if (date !== undefined) response.setHeader('date', date);
    response.setHeader('content-type', 'application/x-amz-json-1.0');
    response.end('{"Table":{}}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = dynamoDbClient({
    ...{ region: 'eu-west-1', endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  });
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  expect(await serviceTimeMs(client, 'control')).toBe(Date.UTC(2020, 10, 28, 12, 0, 7));
  for (date of ['soon', undefined]) {
    await expect(serviceTimeMs(client, 'control')).rejects.toMatchObject({ code: 'rejected', retryable: false });
  }
});
