// Draws the charts that the server described, and follows the theme.
// The page is whole without it. Text from data only ever becomes text nodes.
"use strict";
(() => {
  const shown = new WeakMap(); // what a chart shows, so that it is not drawn again
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // Figures name colours as CSS tokens, e.g. "--pass".
  function withColours(value, styles) {
    if (typeof value === "string") {
      return value.startsWith("--") ? styles.getPropertyValue(value).trim() : value;
    }
    if (Array.isArray(value)) return value.map((item) => withColours(item, styles));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, withColours(v, styles)]));
    }
    return value;
  }

  function draw(chart) {
    const plot = chart.querySelector(".plot");
    const text = chart.querySelector('script[type="application/json"]').textContent;
    const styles = getComputedStyle(document.documentElement);
    const drawn = `${styles.getPropertyValue("--text")} ${plot.clientWidth} ${text}`;
    if (shown.get(plot) === drawn) return;
    shown.set(plot, drawn);
    const figure = withColours(JSON.parse(text), styles);
    const isFirst = !plot.classList.contains("js-plotly-plot");
    // On a narrow screen the legend would push the points out; the table has the same words.
    if (plot.clientWidth < 560) figure.layout.showlegend = false;
    // What the reader has zoomed to stays when there are new points.
    figure.layout.uirevision = "kept";
    Plotly.react(plot, figure.data, figure.layout, { displayModeBar: false, responsive: true });
    if (!isFirst) return;
    plot.on("plotly_click", (event) => {
      const target = event.points[0].customdata;
      if (typeof target === "string" && /^[/#]/.test(target)) location.assign(target);
    });
    const button = chart.querySelector("[data-download]");
    button.hidden = false;
    button.addEventListener("click", () => {
      Plotly.downloadImage(plot, { format: "svg", filename: button.dataset.download });
    });
  }

  function drawVisible() {
    if (typeof Plotly === "undefined") return;
    for (const chart of document.querySelectorAll(".chart")) {
      // A chart in a closed fold has no width yet.
      if (chart.getClientRects().length) draw(chart);
    }
  }

  function openTarget() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    const fold = target && target.closest("details");
    if (!fold) return;
    for (let outer = fold; outer; outer = outer.parentElement.closest("details")) outer.open = true;
    target.scrollIntoView();
  }

  function begin() {
    openTarget();
    drawVisible();
    addEventListener("hashchange", openTarget);
    document.addEventListener("toggle", drawVisible, true);
    dark.addEventListener("change", drawVisible);
    document.addEventListener("changed", drawVisible);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
