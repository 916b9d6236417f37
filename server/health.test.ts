import { expect, it } from 'vitest';
import { answerHealth } from './health.ts';

const answer = (target: string, fault?: string) => {
  const { pathname: path, searchParams: query } = new URL(`https://c${target}`);
  const { status, body } = answerHealth({ path, query }, [{ name: 'store', fault: () => fault }]);
  return [status, body];
};

it('answers in the form of upstream', () => {
  expect(answer('/readyz')).toEqual([200, 'ok']);
  expect(answer('/readyz?verbose')).toEqual([200, '[+]ping ok\n[+]store ok\nreadyz check passed\n']);
  expect(answer('/readyz', 'no space')).toEqual([500, '[+]ping ok\n[-]store failed: no space\nreadyz check failed\n']);
  expect(answer('/readyz?exclude=store', 'no space')).toEqual([200, 'ok']);
});

it('a process that is not ready is alive: it answers', () => {
  expect(answer('/livez', 'no space')).toEqual([200, 'ok']);
  expect(answer('/healthz?verbose', 'no space')).toEqual([200, '[+]ping ok\nhealthz check passed\n']);
});
