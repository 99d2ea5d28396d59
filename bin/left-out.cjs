/** In place of what gnomon never asks of a package, of which some is made as it loads: see known-modules.js. */
module.exports = { CacheStorage: Object };
