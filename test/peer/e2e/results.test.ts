import { describe, expect, it } from 'vitest';
import { TEST_LISTS } from './lists.ts';
import { areaOf, failureReason, focusOf, outcomeOf, reportedIn, summaryOf, withoutTags } from './results.ts';

const OUTPUT = [
  'Nov 22 10:00:00.000: INFO: >>> kubeConfig: /tmp/kubeconfig',
  '{"msg":"Test Suite starting","total":1,"completed":0,"skipped":0,"failed":0}',
  'S [SKIPPING] in Spec Setup (BeforeEach) [0.003 seconds]',
  '[k8s.io] [sig-node] Lease needs a newer server',
  '•{"msg":"PASSED [sig-node] a \\"quoted\\" test [Conformance]","total":1,"completed":1,"skipped":5666,"failed":0}',
  'Nov 22 10:00:01.000: FAIL: expected 3 pods, found 2',
  'at line 7',
  '{"msg":"FAILED [sig-apps] Job should delete a job","total":1,"completed":2,"skipped":1,"failed":1,"failures":[]}',
].join('\n');

describe('outcomes in the output of the test program', () => {
  it('reads names and outcomes from the progress lines alone', () => {
    expect([...reportedIn(OUTPUT)]).toEqual([
      ['[sig-node] a "quoted" test', 'passed'],
      ['[sig-apps] Job should delete a job', 'failed'],
    ]);
  });

  it('finds nothing in a run in which every spec skipped itself', () => {
    expect(reportedIn('S [SKIPPING] [0.003 seconds]\nRan 0 of 5667 Specs\nPASS\n').size).toBe(0);
  });

  it('separates a test that skipped itself from a suite that failed before it', () => {
    const skipped = 'S [SKIPPING] [0.003 seconds]\nRan 0 of 5667 Specs\n';
    expect(outcomeOf('[sig-node] a "quoted" test', OUTPUT)).toBe('passed');
    expect(outcomeOf('[sig-apps] Job should delete a job', OUTPUT)).toBe('failed');
    expect(outcomeOf('a test', skipped)).toBe('skipped');
    expect(outcomeOf('a test', `${skipped}FAIL! -- 0 Passed`)).toBe('failed');
    expect(outcomeOf('a test', '')).toBe('failed');
  });

  it('quotes the failure, or the last lines of a run that ended without one', () => {
    expect(failureReason(OUTPUT)).toMatch(/^Nov 22 10:00:01.000: FAIL: expected 3 pods, found 2\nat line 7\n/);
    expect(failureReason(`${OUTPUT}\n--- FAIL: TestE2E (1.95s)`)).toContain('found 2');
    expect(failureReason('a\n\nb\n')).toBe('a\nb');
    expect(failureReason('I: INFO: Error getting pods\nmore\n')).toBe('I: INFO: Error getting pods');
  });
});

describe('names', () => {
  it('focuses on one test with special characters in its name', () => {
    const name = '[sig-cli] Kubectl client Proxy server should support proxy with --port 0';
    const focus = new RegExp(focusOf(name));
    expect(focus.test(`${name} [Conformance]`)).toBe(true);
    expect(focus.test(name)).toBe(true);
    expect(focus.test(`${name} and more`)).toBe(false);
  });

  it('is in one list only, and without the tag of the conformance suite', () => {
    const names = Object.values(TEST_LISTS).flat();
    expect(names.length).toBeGreaterThan(100);
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => withoutTags(name) !== name)).toEqual([]);
  });

  it('counts by area', () => {
    expect(areaOf('[sig-apps] Job should delete a job')).toBe('sig-apps');
    const result = (name: string, outcome: 'passed' | 'failed' | 'skipped') => ({ name, outcome, seconds: 1 });
    expect(summaryOf([result('[b] 1', 'passed'), result('[a] 2', 'failed'), result('[a] 3', 'skipped')])).toEqual([
      'a                      0 passed, 1 failed, 1 skipped',
      'b                      1 passed, 0 failed, 0 skipped',
      'all                    1 passed, 1 failed, 1 skipped',
    ]);
  });
});
