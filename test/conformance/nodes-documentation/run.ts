/**
 * npm run nodes-documentation -- FILE
 *
 * Writes the statements of Kubernetes' documentation about nodes, each with its test, as a page of Markdown, and prints
 * how many there are of each kind.
 */
import { writeFileSync } from 'node:fs';
import { deviationAnchor } from './deviation-anchor.ts';
import { pages } from './pages.ts';
import { countsOf, describeCounts, renderPages } from './render.ts';

const [file, ...others] = process.argv.slice(2);
const USAGE = 'Usage: npm run nodes-documentation -- FILE';
if (file === '--help') console.log(USAGE);
else if (file === undefined || file.startsWith('-') || others.length > 0) {
  console.error(USAGE);
  process.exitCode = 2;
} else {
  writeFileSync(file, renderPages(pages, deviationAnchor));
  console.log(`${file}: ${describeCounts(countsOf(pages))}`);
}
