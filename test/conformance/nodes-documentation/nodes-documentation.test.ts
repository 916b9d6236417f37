/** The table of Kubernetes' documentation about nodes: what it names exists, and no section is left out. */
import { describe, expect, it } from 'vitest';
import { deviationAnchor } from './deviation-anchor.ts';
import { pages } from './pages.ts';
import { countsOf, renderPages, statementsOf } from './render.ts';
import { hasTest } from './test-titles.ts';

const statements = statementsOf(pages);

describe('the statements about nodes', () => {
  it('name tests that exist and are not skipped', () => {
    const missing = statements.flatMap(({ says, tests }) =>
      tests.filter(({ file, name }) => !hasTest(file, name)).map(({ file, name }) => `${says} ${file}: ${name}`),
    );
    expect(missing).toEqual([]);
  });

  it('have a test, or a reason why there is none', () => {
    for (const { says, outcome, tests, reason } of statements) {
      const isShown = outcome === 'shown' || outcome === 'differs';
      expect([tests.length > 0, reason.trim() !== ''], says).toEqual([isShown, outcome !== 'shown']);
    }
  });

  it('quote words of docs/deviations.md', () => {
    const quoted = statements.flatMap(({ deviation }) => deviation ?? []);
    expect(quoted.filter((words) => deviationAnchor(words) === undefined)).toEqual([]);
  });

  it('cover every section once', () => {
    for (const { title, sections } of pages) {
      const headings = sections.map(({ heading }) => heading);
      expect(new Set(headings).size, title).toBe(headings.length);
      expect(sections.filter((each) => each.statements.length === 0).map(({ heading }) => heading)).toEqual([]);
    }
  });

  it('are a page with each of them', () => {
    const page = renderPages(pages, deviationAnchor);
    const rows = page.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| statement |'));
    expect(rows.filter((row) => row !== '| --- | --- |')).toHaveLength(statements.length);
    const { shown, differs, notHere, advice } = countsOf(pages);
    expect(shown + differs + notHere + advice).toBe(statements.length);
    expect(page).toContain('](deviations.md#rules)');
  });
});

describe('a test', () => {
  const FILE = 'test/conformance/nodes-documentation/nodes-documentation.test.ts';

  it('is found by its title, and by no part of it', () => {
    expect(hasTest(FILE, 'have a test, or a reason why there is none')).toBe(true);
    expect(hasTest(FILE, 'have a test')).toBe(false);
    expect(hasTest('test/conformance/none.test.ts', 'have a test')).toBe(false);
  });

  it.each([
    ['one', 1],
    ['two', 2],
  ])('of rows has the values of a row: %s is %i', (word, number) => {
    expect(hasTest(FILE, `of rows has the values of a row: ${word} is ${number}`)).toBe(true);
    expect(hasTest(FILE, `of rows has the values of a row: ${word}teen is ${number}`)).toBe(false);
    expect(hasTest(FILE, 'of rows has the values of a row: %s is %i')).toBe(true);
  });

  it('of a scenario is named by its file', () => {
    expect(hasTest('test/scenario/shipped.test.ts', 'one-node-dies.yaml holds')).toBe(true);
    expect(hasTest('test/scenario/shipped.test.ts', 'no-node-dies.yaml holds')).toBe(false);
  });
});
