import { describe, expect, it } from 'vitest';
import { silentLog, virtualTime } from '../../../test/support/agent-api.ts';
import { LOGIND_SHUTDOWN } from '../../rules/shutdown-start.ts';
import { ShutdownInhibitor } from './shutdown-inhibitor.ts';

function world() {
  const acts: string[] = [];
  const errors: string[] = [];
  const faults: { hold?: Error; release?: Error } = {};
  let locks = 0;
  const inhibitor = new ShutdownInhibitor(
    {
      rules: LOGIND_SHUTDOWN,
      delayMaxMs: async () => 0,
      raiseDelayMax: async () => {},
      async hold() {
        if (faults.hold !== undefined) throw faults.hold;
        locks += 1;
        const lock = locks;
        acts.push(`hold ${lock}`);
        return {
          async release() {
            acts.push(`release ${lock}`);
            if (faults.release !== undefined) throw faults.release;
          },
        };
      },
      async *watch() {},
    },
    virtualTime(0),
    { ...silentLog, error: (message) => errors.push(message) },
  );
  return { inhibitor, acts, errors, faults };
}

describe('the lock', () => {
  it('is acquired before the previous one is released', async () => {
    const { inhibitor, acts } = world();
    await inhibitor.release();
    await inhibitor.acquire();
    await inhibitor.acquire();
    await inhibitor.release();
    await inhibitor.release();
    expect(acts).toEqual(['hold 1', 'hold 2', 'release 1', 'release 2']);
  });

  it('stays when another one cannot be acquired', async () => {
    const { inhibitor, acts, faults } = world();
    await inhibitor.acquire();
    faults.hold = new Error('no bus');
    await expect(inhibitor.acquire()).rejects.toThrow('no bus');
    await inhibitor.release();
    expect(acts).toEqual(['hold 1', 'release 1']);
  });

  it('is forgotten when it cannot be released', async () => {
    const { inhibitor, acts, errors, faults } = world();
    await inhibitor.acquire();
    faults.release = new Error('no bus');
    await inhibitor.release();
    await inhibitor.release();
    expect([acts, errors]).toEqual([['hold 1', 'release 1'], ['Failed to release the lock']]);
  });
});
