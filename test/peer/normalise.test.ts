import { describe, expect, it } from 'vitest';
import { normalise } from './normalise.ts';

const surroundings = { serverUrl: 'https://127.0.0.1:6443', workDir: '/tmp/k/work', homeDir: '/tmp/k/home' };
const of = (text: string) => normalise(text, surroundings);

describe('normalising what kubectl prints', () => {
  it.each([
    ['the server', 'dial https://127.0.0.1:6443/api at 127.0.0.1:6443', 'dial <SERVER>/api at <HOST>'],
    ['directories', 'in /tmp/k/work and /tmp/k/home/.kube', 'in <DIR> and <HOME>/.kube'],
    ['the copy an edit keeps', 'stored to "/tmp/k/tmp/kubectl.1.32-edit-29.yaml"', 'stored to "<TMPFILE>"'],
    ['a uid', 'uid: 6f1c2d3e-0a1b-4c5d-8e9f-001122334455', 'uid: <UID>'],
    ['not a fixed uid', 'uid: 00000000-0000-4000-8000-000000000001', 'uid: 00000000-0000-4000-8000-000000000001'],
    ['a time', 'at: "2026-11-20T10:00:00Z"', 'at: "<TIME>"'],
    ['a time with fraction', 'at: "2026-11-20T10:00:00.123456Z"', 'at: "<MICROTIME>"'],
    ['a described time', 'Created:   Fri, 20 Nov 2026 10:00:00 +0000', 'Created:   <TIME>'],
    ['no time of 2001', '2001-02-03T04:05:06Z', '2001-02-03T04:05:06Z'],
    [
      'a resource version',
      'resourceVersion: "12"\n"resourceVersion": "3"',
      'resourceVersion: "<RV>"\n"resourceVersion": "<RV>"',
    ],
    ['a described resource version', 'Resource Version:  77', 'Resource Version:   <RV>'],
    ['the group version of budgets', 'policy/v1beta1', 'policy/v1'],
    ['both versions of budgets', 'policy/v1\npolicy/v1beta1\n', 'policy/v1\n'],
    ['the name of the binary', 'run kubectl.1.32 --help', 'run kubectl --help'],
    ['a patch that changes nothing', 'node/kw-1 patched (no change)\n', 'node/kw-1 patched\n'],
    ['pointers', '(0xc0004a2)', '(<PTR>)'],
    ['gaps and blanks at the end', '  a    b \t c  ', '  a   b   c'],
  ])('replaces %s', (_, text, wanted) => {
    expect(of(text)).toBe(wanted);
  });

  it('replaces ages in tables that have an age', () => {
    expect(of('NAME   STATUS   AGE\nkw-1   Ready    5m10s\n')).toBe('NAME   STATUS   AGE\nkw-1   Ready   <AGE>\n');
    expect(of('LAST SEEN   TYPE\n5s (x3 over 2m)   Normal\n')).toBe(
      'LAST SEEN   TYPE\n<AGE> (x3 over <AGE>)   Normal\n',
    );
  });

  it('keeps what looks like an age elsewhere', () => {
    expect(of('NAME   LABEL\nkw-1   5m\n')).toBe('NAME   LABEL\nkw-1   5m\n');
    expect(of('5s\n')).toBe('5s\n');
    expect(of('Grace:   30s\n')).toBe('Grace:   30s\n');
  });

  it('drops what old servers say about old groups', () => {
    expect(of('Warning: policy/v1beta1 X is deprecated in v1.21+, unavailable in v1.25+\nok\n')).toBe('ok\n');
  });
});
