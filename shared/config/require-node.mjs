/**
 * Refuses a Node.js that is too old, in one line instead of a stack trace. Entries import this before any TypeScript,
 * which such a Node.js cannot load. So this file is JavaScript that every Node.js with modules can read.
 *
 * 22.18 is the first release of line 22 that runs TypeScript without a flag; the bundled agent needs 22 for its
 * built-ins.
 */
const NODE_MINIMUM = '22.18.0';

const isOlder = (found, needed) => {
  const [left, right] = [found, needed].map((version) => version.split('.').map(Number.parseFloat));
  const differing = right.findIndex((part, index) => part !== left[index]);
  return differing >= 0 && left[differing] < right[differing];
};

/**
 * Ends the process with exit code 1 when its Node.js is too old.
 *
 * @param {string} program as the line begins
 * @param {string} remedy what to do about it
 */
export function requireNode(program, remedy) {
  const found = process.versions.node;
  if (!isOlder(found, NODE_MINIMUM)) return;
  console.error(`${program}: this is Node.js ${found}, and ${NODE_MINIMUM} or later is needed; ${remedy}`);
  process.exit(1);
}
