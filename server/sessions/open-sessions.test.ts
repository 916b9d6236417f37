import { describe, expect, it, onTestFinished } from 'vitest';
import type { KubePod } from '../../shared/kinds/types.ts';
import { OpenSessions } from './open-sessions.ts';
import { sessionSlots } from './session-limits.ts';

const pod = (uid: string): KubePod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'default', name: 'web', uid },
});

function opened(current: { pod?: KubePod; nowMs: number; fails?: boolean }) {
  const sessions = new OpenSessions({
    monotonicMs: () => current.nowMs,
    findPod: async () => {
      if (current.fails === true) throw new Error('the store does not answer');
      return current.pod;
    },
  });
  onTestFinished(() => sessions.stop());
  return { sessions, session: sessions.add(pod('u1')) };
}

describe('an open session', () => {
  it('continues while its pod exists, and where that cannot be read', async () => {
    const current = { pod: pod('u1'), nowMs: 0, fails: false };
    const { sessions, session } = opened(current);
    await sessions.check();
    current.fails = true;
    await sessions.check();
    expect(session.ended.aborted).toBe(false);
  });

  it.each([{ nowMs: 0 }, { pod: pod('u2'), nowMs: 0 }])('ends when its pod was deleted: %j', async (current) => {
    const { sessions, session } = opened(current);
    await sessions.check();
    expect(session.ended.reason).toBe('pod web was deleted');
  });

  it('ends when nothing was sent for four hours', async () => {
    const current = { pod: pod('u1'), nowMs: 0 };
    const { sessions, session } = opened(current);
    current.nowMs = 3 * 3_600_000;
    session.onActivity();
    current.nowMs = 7 * 3_600_000 - 1;
    await sessions.check();
    expect(session.ended.aborted).toBe(false);
    current.nowMs += 1;
    await sessions.check();
    expect(session.ended.reason).toBe('nothing was sent for 4 h');
  });

  it('ends with the process, unless it was closed', () => {
    const { sessions, session } = opened({ nowMs: 0 });
    const closed = sessions.add(pod('u3'));
    closed.close();
    sessions.stop();
    expect([session.ended.reason, closed.ended.aborted]).toEqual(['the API stops', false]);
  });
});

describe('sessions at once', () => {
  it('are limited for a user, for a node, and together', () => {
    const slots = sessionSlots({ all: 4, ofUser: 2, ofNode: 3 });
    const first = slots.acquire({ user: 'ada', nodeName: 'n1' });
    slots.acquire({ user: 'ada', nodeName: 'n1' });
    expect(() => slots.acquire({ user: 'ada', nodeName: 'n2' })).toThrow('"ada" has 2 sessions');
    slots.acquire({ user: 'bob', nodeName: 'n1' });
    expect(() => slots.acquire({ user: 'bob', nodeName: 'n1' })).toThrow('node "n1" has 3 sessions');
    slots.acquire({ user: 'bob', nodeName: 'n2' });
    expect(() => slots.acquire({ user: 'eve', nodeName: 'n3' })).toThrow('this cluster has 4 sessions');
    first.release();
    first.release();
    expect(slots.held()).toBe(3);
    slots.acquire({ user: 'ada', nodeName: 'n1' });
    expect(() => slots.acquire({ user: 'eve', nodeName: 'n3' })).toThrow('this cluster has 4 sessions');
  });
});
