// `npm run site` writes the pages and the navigation that this configuration reads (scripts/site/run.ts).
import { readFileSync } from 'node:fs';
import { headingAnchor } from '../../scripts/site/anchors.ts';

const navigation = JSON.parse(readFileSync(new URL('../.pages/navigation.json', import.meta.url), 'utf8'));

export default {
  title: 'Nodekeeper',
  description: "Kubernetes' node controller, scheduler and workload controllers without a control plane to run",
  base: process.env.SITE_BASE ?? '/',
  srcDir: '.pages',
  outDir: process.env.SITE_OUT,
  cacheDir: 'node_modules/.cache',
  // Pages are Markdown of a forge: no HTML, no bare addresses as links, the anchors of a forge.
  markdown: { html: false, linkify: false, anchor: { slugify: headingAnchor } },
  themeConfig: {
    ...navigation,
    search: { provider: 'local' },
    outline: 'deep',
  },
};
