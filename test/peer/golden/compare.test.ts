import { describe, expect, it } from 'vitest';
import { expectationOf, type GoldenCase, type GoldenStep } from './case.ts';
import { compareStep, type Printed } from './compare.ts';

const story: GoldenCase = { name: 'a-case', about: '', steps: [] };
const step = (fields: Partial<GoldenStep>): GoldenStep => ({ args: [], exit: 0, stdout: '', stderr: '', ...fields });
const printed = (fields: Partial<Printed>): Printed => ({ exitCode: 0, stdout: '', stderr: '', ...fields });
const passes = (wanted: Partial<GoldenStep>, got: Partial<Printed>, golden = story): boolean =>
  compareStep(golden, step(wanted), printed(got)).length === 0;

describe('comparing a step with its recording', () => {
  it('shows what was wanted and what came, with some lines around', () => {
    const problems = compareStep(story, step({ stdout: 'a\nb\nc\n' }), printed({ stdout: 'a\nx\nc\n' }));
    expect(problems).toEqual(['stdout: - wanted, + got', '      a', '    - b', '    + x', '      c', '      ']);
  });

  it('compares the exit code, or success alone', () => {
    expect(passes({ exit: 1 }, { exitCode: 2 })).toBe(false);
    expect(passes({ exit: 1, exit_as: 'nonzero' }, { exitCode: 2 })).toBe(true);
    expect(passes({ exit: 1, check: 'exit' }, { exitCode: 2, stdout: 'x' })).toBe(true);
    expect(passes({ exit: null }, {})).toBe(true);
    expect(passes({ check: 'none' }, { exitCode: 9, stderr: 'x' })).toBe(true);
  });

  it('compares as a set, as JSON, by patterns, or not at all', () => {
    expect(passes({ stdout: 'a\nb\n', stdout_as: 'set' }, { stdout: 'b\na\n' })).toBe(true);
    expect(passes({ stdout: 'a\nb\n', stdout_as: 'set' }, { stdout: 'b\n' })).toBe(false);
    const wanted = '{"items":[{"metadata":{"name":"x"}}],"kind":"List"}';
    const got =
      '{"kind":"List","items":[{"kind":"Node","apiVersion":"v1","metadata":{"name":"x","managedFields":[1]}}]}';
    expect(passes({ stdout: wanted, stdout_as: 'json' }, { stdout: got })).toBe(true);
    expect(passes({ stdout: '<cut>', stdout_as: 'match', stdout_match: ['^b$'] }, { stdout: 'a\nb\n' })).toBe(true);
    expect(passes({ stdout: '<cut>', stdout_as: 'match', stdout_match: ['^c$'] }, { stdout: 'a\nb\n' })).toBe(false);
    expect(passes({ stdout: 'a', stdout_as: 'any' }, { stdout: 'b' })).toBe(true);
  });

  it('replaces, drops and keeps lines as case and step say, on both sides', () => {
    const golden: GoldenCase = { ...story, ignore: ['^skip'], normalise: [['^(diff).*$', '$1']] };
    expect(passes({ stdout: 'diff a b\nx\n' }, { stdout: 'diff c d\nskip\nx\n' }, golden)).toBe(true);
    expect(passes({ stdout: 'n 1\n', keep: '^n ' }, { stdout: 'm 1\nn 1\n' })).toBe(true);
    expect(passes({ stdout: '', keep: '^n ' }, { stdout: 'm 1\n' })).toBe(true);
  });

  it('reads what a release prints differently from its variant', () => {
    const recorded = step({ stdout: 'new\n', variants: [{ kubectl: [27, 28], stdout: 'old\n' }] });
    expect(expectationOf(recorded, 27).stdout).toBe('old\n');
    expect(expectationOf(recorded, 32).stdout).toBe('new\n');
  });
});
