/**
 * Which functions does a test file reach? Each function of a file gets a call in front that notes its position. Only tests
 * that reach a mutant's function can detect it, so no other test is run for it.
 */
import ts from 'typescript';
import { isFunction, parse } from './mutators.ts';

/** What probes call: a function on the global object, absent outside of a reach run. */
export const NOTE = '__mutantsNote';

/** The text with a probe in each function, and one for the module itself (position -1). */
export function withProbes(file: string, text: string): string {
  const inserts: { at: number; text: string }[] = [];
  const note = (position: number) => `globalThis.${NOTE}?.(${JSON.stringify(file)}, ${position})`;
  const visit = (node: ts.Node): void => {
    if (isFunction(node)) {
      const { body } = node;
      if (ts.isBlock(body)) inserts.push({ at: body.getStart() + 1, text: `${note(node.getStart())};` });
      else inserts.push({ at: body.getStart(), text: `(${note(node.getStart())}, ` }, { at: body.end, text: ')' });
    }
    ts.forEachChild(node, visit);
  };
  const source = parse(file, text);
  visit(source);
  // From the back: earlier positions stay; of two at one place the inner one is inserted first.
  const ordered = inserts
    .map((insert, order) => ({ ...insert, order }))
    .sort((a, b) => b.at - a.at || b.order - a.order);
  let probed = text;
  for (const { at, text: inserted } of ordered) probed = probed.slice(0, at) + inserted + probed.slice(at);
  return `${probed}\n${note(-1)};\n`;
}
