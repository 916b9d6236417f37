import { describe, expect, it } from 'vitest';
import { answered, inOrder, refused, scriptedApi } from '../../test/support/agent-api.ts';
import { promiseSilence, sleepCommand } from './sleep.ts';

describe('nodekeeper-agent sleep', () => {
  it('reads its options, and leaves the others to the agent', () => {
    expect(sleepCommand(['--config', 'f', '--for', '2h', '--reason', 'dry dock', '--hostname-override', 'n'])).toEqual({
      seconds: 7_200,
      reason: 'dry dock',
      rest: ['--config', 'f', '--hostname-override', 'n'],
    });
    for (const time of [undefined, '0', '2w', '-5', '1.5h']) {
      expect(sleepCommand(time === undefined ? [] : ['--for', time])).toBeUndefined();
    }
  });

  it('promises the end by its clock, and reports what the cluster answered', async () => {
    const api = scriptedApi(inOrder([answered(200, {}), refused(422, 'Invalid')]));
    const promise = { nodeName: 'n1', seconds: 90, reason: '' };
    const at = { nowMs: Date.UTC(2026, 0, 1), timeoutMs: 10_000 };
    expect(await promiseSilence(api, promise, at)).toEqual({
      accepted: true,
      line: 'node n1 is expected to be silent until 2026-01-01T00:01:30Z',
    });
    expect(api.requests[0]).toMatchObject({
      method: 'PATCH',
      path: '/api/v1/nodes/n1',
      contentType: 'application/merge-patch+json',
      body: { metadata: { annotations: { 'nodekeeper.dev/planned-silence-until': '2026-01-01T00:01:30Z' } } },
    });
    expect((await promiseSilence(api, promise, at)).accepted).toBe(false);
  });
});
