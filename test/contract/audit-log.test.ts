import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startLogServer } from '../../aws-local/logs/log-server.ts';
import { AuditLogError, auditLogConnectionFrom, cloudWatchAuditTrail } from '../../functions/api/put-log-events.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';

const LINE = {
  time: '2026-01-01T00:00:00Z',
  user: 'ada',
  groups: ['nodekeeper:admins'],
  verb: 'delete',
  group: '',
  resource: 'nodes',
  name: 'n1',
  sourceIp: '192.0.2.9',
  userAgent: 'kubectl',
  code: 200,
};
const environment = { AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'AKID', AWS_SECRET_ACCESS_KEY: 'secret' };
const place = { logGroup: 'audit', logStream: 'api' };
const trailTo = (endpoint: string) =>
  cloudWatchAuditTrail(
    auditLogConnectionFrom({ ...environment, AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: endpoint }, place),
    () => Date.UTC(2026, 0, 1),
  );

async function answering(answers: readonly [number, string][]) {
  let asked = 0;
  const server = createServer((_request, response) => {
    const [status, body] = answers[Math.min(asked, answers.length - 1)]!;
    asked += 1;
    response.writeHead(status).end(body);
  });
  const port = await listenOnLoopback(server);
  return {
    endpoint: `http://127.0.0.1:${port}`,
    asked: () => asked,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

describe('the audit trail in CloudWatch Logs', () => {
  it('adds a line a record', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'audit-'));
    const logs = await startLogServer(directory, (group) => `${group}.log`);
    try {
      await trailTo(logs.endpoint).record(LINE);
      await trailTo(logs.endpoint).record({ ...LINE, code: 404 });
      const lines = readFileSync(join(directory, 'audit.log'), 'utf8').trim().split('\n');
      expect(lines.map((line) => JSON.parse(line))).toEqual([LINE, { ...LINE, code: 404 }]);
    } finally {
      await logs.stop();
      rmSync(directory, { recursive: true });
    }
  });

  it('tries once more, and then says that it failed', async () => {
    const once = await answering([
      [500, ''],
      [200, '{}'],
    ]);
    await trailTo(once.endpoint).record(LINE);
    expect(once.asked()).toBe(2);
    once.stop();
    const never = await answering([[500, '']]);
    await expect(trailTo(never.endpoint).record(LINE)).rejects.toBeInstanceOf(AuditLogError);
    expect(never.asked()).toBe(2);
    never.stop();
    await expect(trailTo(never.endpoint).record(LINE)).rejects.toBeInstanceOf(AuditLogError);
  });

  it('treats a rejected line as a failure', async () => {
    const server = await answering([[200, '{"rejectedLogEventsInfo":{"tooOldLogEventEndIndex":1}}']]);
    await expect(trailTo(server.endpoint).record(LINE)).rejects.toThrow('rejected');
    server.stop();
  });

  it('names every variable that is missing', () => {
    expect(() => auditLogConnectionFrom({ AWS_REGION: 'eu-west-1' }, place)).toThrow(
      'AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY',
    );
  });
});
