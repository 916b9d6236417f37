/** The release of this project: that of package.json (scripts/release/release.test.ts compares them). */
export const NODEKEEPER_VERSION = '0.1.0';
