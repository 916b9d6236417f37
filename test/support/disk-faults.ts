/**
 * node:fs with calls that fail, for tests. With `vi.mock('node:fs', (original) => faultyFs(original))` every module of
 * the agent gets it. Calls about `root`, calls on open files and reads of /proc are counted, and the chosen ones fail.
 */
import type * as NodeFs from 'node:fs';

/** Of a file system without hard links. */
export type LinkFault = 'EPERM' | 'ENOTSUP' | 'EOPNOTSUPP';
export type DiskFault = 'ENOSPC' | 'EROFS' | 'EMFILE' | 'EIO' | 'EDQUOT' | LinkFault;

export const LINK_FAULTS: readonly DiskFault[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP'];
export const DISK_FAULTS: readonly DiskFault[] = ['ENOSPC', 'EROFS', 'EMFILE', 'EIO'];
/** More calls than any scenario makes. */
const CALLS_MAX = 400;

export const diskFaults = {
  root: '',
  codes: [] as readonly DiskFault[],
  /** The first call that fails, counted from 1; 0: none. */
  from: 0,
  /** The last one. */
  to: 0,
  calls: 0,
  failed: 0,
  /** Counts the calls that can fail with one of these codes. Where several can, they alternate from call to call. */
  arm(root: string, codes: readonly DiskFault[], from: number, to: number): void {
    Object.assign(diskFaults, { root, codes, from, to, calls: 0, failed: 0 });
  },
  /** From now on everything works. Returns how many calls failed. */
  release(): number {
    const { failed } = diskFaults;
    Object.assign(diskFaults, { from: 0, to: 0 });
    return failed;
  },
};

/** Runs it with the n-th call failing, for each n there is. Returns how many there were. */
export async function eachCall(
  root: string,
  codes: readonly DiskFault[],
  scenario: (n: number) => Promise<void>,
): Promise<number> {
  for (let n = 1; n <= CALLS_MAX; n += 1) {
    diskFaults.arm(root, codes, n, n);
    await scenario(n);
    if (diskFaults.release() === 0) return n - 1;
  }
  throw new Error(`more than ${CALLS_MAX} calls`);
}

const WRITES = new Set(
  'mkdirSync writeFileSync renameSync rmSync ftruncateSync writeFile rename rm link fchmod fsync'.split(' '),
);
const OPENS = new Set(
  'openSync readFileSync readdirSync statSync accessSync readSync open readFile readlink stat statfs'.split(' '),
);

/** Undefined when this call goes through. */
function faultOf(name: string, first: unknown): NodeJS.ErrnoException | undefined {
  const { from, to, codes, root } = diskFaults;
  if (from === 0) return undefined;
  const isOurs = typeof first !== 'string' || first.startsWith(root);
  // One unreadable environment ends a pass over /proc as an unreadable list of processes does.
  const isProc = typeof first === 'string' && first.startsWith('/proc') && !first.endsWith('/environ');
  // A full or read-only disk can be read.
  const writes = WRITES.has(name) || name === 'openSync' || name === 'open';
  const canFailWith = (code: DiskFault): boolean => {
    if (LINK_FAULTS.includes(code)) return isOurs && name === 'link';
    return code === 'EMFILE' ? isOurs || isProc : isOurs && (writes || code === 'EIO');
  };
  const possible = codes.filter(canFailWith);
  const code = possible[diskFaults.calls % possible.length];
  if (code === undefined) return undefined;
  diskFaults.calls += 1;
  if (diskFaults.calls < from || diskFaults.calls > to) return undefined;
  diskFaults.failed += 1;
  return Object.assign(new Error(`${code}: made to fail, ${name} '${String(first)}'`), { code, syscall: name });
}

type Anything = (...args: unknown[]) => unknown;

export async function faultyFs(original: () => Promise<typeof NodeFs>): Promise<Record<string, unknown>> {
  const real = (await original()) as unknown as Record<string, Anything>;
  const faulty: Record<string, unknown> = { ...real };
  for (const name of [...WRITES, ...OPENS]) {
    const call = real[name] as Anything;
    faulty[name] = (...args: unknown[]): unknown => {
      const fault = faultOf(name, args[0]);
      if (fault === undefined) return call(...args);
      const callback = args.at(-1);
      if (name.endsWith('Sync') || typeof callback !== 'function') throw fault;
      setImmediate(callback as (error: Error) => void, fault);
      return undefined;
    };
  }
  return { ...faulty, default: faulty };
}
